"""The changes that explanations propose stand in `framework.changes`, where plugins find them too."""

from mooring.framework.changes import *  # noqa: F403
