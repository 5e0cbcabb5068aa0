"""The changes that explanations try; they are defined in `framework.changes`, where plugins find them too."""

from mooring.framework.changes import *  # noqa: F403
