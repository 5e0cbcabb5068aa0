"""The extension points of the Scheduling Framework."""

from __future__ import annotations

from enum import StrEnum


class ExtensionPoint(StrEnum):
    """An extension point by its key in the configuration. `multiPoint` is not a point.

    The order is that in which the reference fills the points, so that the same problem comes first.
    """

    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    RESERVE = "reserve"
    PRE_SCORE = "preScore"
    SCORE = "score"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PERMIT = "permit"
    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"

    @property
    def plugin_type(self) -> str:
        """The name in messages for a plugin of this point: `PreFilterPlugin`."""
        return f"{self.value[0].upper()}{self.value[1:]}Plugin"


#: The points that a pod passes, in this order.
POD_POINTS = (
    ExtensionPoint.PRE_ENQUEUE,
    ExtensionPoint.QUEUE_SORT,
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.POST_FILTER,
    ExtensionPoint.PRE_SCORE,
    ExtensionPoint.SCORE,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PERMIT,
    ExtensionPoint.PRE_BIND,
    ExtensionPoint.BIND,
    ExtensionPoint.POST_BIND,
)
