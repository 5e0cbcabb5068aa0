"""What a class says of its methods holds for these, and not for those of a class derived from it.

Who derives a class from a plugin and overrides `filter` alone means that method. The `filter_rows` of the
base class would be asked instead, and its signature may leave out what the new method reads. So such a
promise counts only if no method that it is about was overridden further down: the plugin is slower then, and
right. Who overrides both forms knows the contract: then the signature of the base class is meant for both.
"""

from __future__ import annotations

from collections.abc import Mapping

_FORMS: Mapping[str, str] = {"filter": "filter_rows", "score": "score_rows"}
_FILTERS = ("pre_filter", "filter", "filter_rows")
_SCORES = ("pre_score", "score", "score_rows", "normalize_scores")

#: What a plugin may have → the methods that it is about.
PROMISES: Mapping[str, tuple[str, ...]] = {
    "filter_rows": ("filter",),
    "score_rows": ("score",),
    "passes_on_states": ("filter", "filter_rows"),
    "score_states": ("score", "score_rows"),
    "sees_only_resources": (*_FILTERS, *_SCORES),
    "sign": ("filter", "score"),
    "sign_here": ("filter", "score"),
    "depends_on": ("filter", "score"),
    "nodes_version": ("filter", "score"),
    "signature_fields": ("sign", "sign_here", "depends_on"),
    "normalizes_by_extremes": ("normalize_scores",),
    "post_filter_repeats": ("post_filter",),
    "placement_score_bounds": ("score_placement",),
}
#: Those that are meant for a method of a derived class that was overridden in both of its forms.
_OF_BOTH_FORMS = frozenset(("sign", "sign_here", "depends_on", "nodes_version"))

#: A class that only watches the methods of another one names it here.
STANDS_FOR = "_mooring_stands_for"


def holds(plugin: object, promise: str) -> bool:
    """Whether no method that the promise is about was overridden below the class that makes it."""
    of_instance = getattr(plugin, "__dict__", {})
    if promise in of_instance:
        return True
    own: type = getattr(type(plugin), STANDS_FOR, type(plugin))
    home = next((each for each in own.__mro__ if promise in vars(each)), None)
    if home is None:
        return True
    for method in PROMISES[promise]:
        if promise in _OF_BOTH_FORMS and holds(plugin, _FORMS[method]):
            continue
        meant = _found(home, method)
        if meant is not None and (method in of_instance or _found(own, method) is not meant):
            return False
    return True


def _found(owner: type, name: str) -> object:
    return next((vars(each)[name] for each in owner.__mro__ if name in vars(each)), None)
