"""From the devices that were found to what becomes `status.allocation` of a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mooring.devices.claim_requests import Alternatives, ClaimRequests, Request
from mooring.devices.holdings import Taken
from mooring.objects.devices import (
    Allocation,
    DeviceAllocationConfig,
    DeviceAllocationResult,
    DeviceClass,
    DevicesAllocation,
    DeviceToleration,
    ResourceClaim,
)
from mooring.objects.selectors import (
    NAME_FIELD,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
)


class TooManyTermsError(Exception):
    """A slice with a node selector of several terms, which the API refuses."""


def make_allocation(
    claim: ClaimRequests,
    taken: Sequence[Taken],
    chosen: Mapping[Alternatives, Request],
    node_name: str,
    new_share_id: Callable[[], str],
    *,
    binds_to_node: bool = True,
) -> Allocation:
    """`binds_to_node` says whether `bindsToNode` of devices counts. Raises TooManyTermsError."""
    requests = [chosen.get(each, each.options[0]) for each in claim.requests]
    return Allocation(
        devices=DevicesAllocation(
            results=[_result(claim.claim, each, new_share_id) for each in taken],
            config=[*_class_configs(requests), *_claim_configs(claim, requests)],
        ),
        node_selector=_node_selector(taken, node_name, binds_to_node=binds_to_node),
    )


def _result(
    claim: ResourceClaim, taken: Taken, new_share_id: Callable[[], str]
) -> DeviceAllocationResult:
    request, candidate = taken.request, taken.candidate
    device = candidate.device
    return DeviceAllocationResult(
        request=request.full_name,
        driver=candidate.id.driver,
        pool=candidate.id.pool,
        device=candidate.id.device,
        admin_access=request.admin_access or None,
        tolerations=_tolerations(claim, request),
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=new_share_id() if candidate.multiple else None,
        consumed_capacity={each.name: each.amount for each in taken.amounts},
    )


def _tolerations(claim: ResourceClaim, request: Request) -> list[DeviceToleration]:
    """Those of the first request of that name, should there be several."""
    for each in claim.spec.devices.requests:
        if each.name != request.base:
            continue
        if request.full_name == request.base:
            return each.exactly.tolerations if each.exactly is not None else []
        for option in each.first_available:
            if option.name == request.name:
                return option.tolerations
    return request.tolerations


def _class_configs(requests: Sequence[Request]) -> list[DeviceAllocationConfig]:
    """The configurations of each class, once, with all requests for the class."""
    users: dict[str, list[str]] = {}
    classes: dict[str, DeviceClass] = {}
    for request in requests:
        if request.device_class is not None:
            classes.setdefault(request.device_class.name, request.device_class)
            users.setdefault(request.device_class.name, []).append(request.full_name)
    return [
        DeviceAllocationConfig(source="FromClass", requests=users[name], opaque=config.opaque)
        for name, device_class in classes.items()
        for config in device_class.spec.config
    ]


def _claim_configs(
    claim: ClaimRequests, requests: Sequence[Request]
) -> list[DeviceAllocationConfig]:
    """The configurations of the claim. One that names requests is repeated for each that it fits."""
    configs = []
    for config in claim.claim.spec.devices.config:
        fitting = sum(
            request.base in config.requests or request.full_name in config.requests
            for request in requests
        )
        entry = DeviceAllocationConfig(
            source="FromClaim", requests=config.requests, opaque=config.opaque
        )
        configs += [entry] * (fitting if config.requests else 1)
    return configs


def _node_selector(
    taken: Sequence[Taken], node_name: str, *, binds_to_node: bool
) -> NodeSelector | None:
    """Where the devices can be used; None if everywhere."""
    fields: list[SelectorRequirement] = []
    expressions: list[SelectorRequirement] = []
    for each in taken:
        device, spec = each.candidate.device, each.candidate.slice.spec
        told = device if spec.per_device_node_selection else spec
        if told.node_name is not None or (binds_to_node and device.binds_to_node):
            only = SelectorRequirement(key=NAME_FIELD, operator="In", values=[node_name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[only])])
        if told.node_selector is None or not told.node_selector.node_selector_terms:
            continue
        term, *more = told.node_selector.node_selector_terms
        if more:
            raise TooManyTermsError(
                f"unsupported ResourceSlice.NodeSelector with {len(more) + 1} terms"
            )
        _add_new(fields, term.match_fields)
        _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=fields, match_expressions=expressions)
    return NodeSelector(node_selector_terms=[term])


def _add_new(known: list[SelectorRequirement], more: Sequence[SelectorRequirement]) -> None:
    for requirement in more:
        if not any(_alike(requirement, each) for each in known):
            known.append(requirement)


def _alike(one: SelectorRequirement, other: SelectorRequirement) -> bool:
    return (one.key, one.operator) == (other.key, other.operator) and set(one.values) == set(
        other.values
    )
