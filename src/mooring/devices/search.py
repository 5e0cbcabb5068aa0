"""The search for devices: depth first, in the reference's order, and the first solution wins.

Claims are served one after the other, and so are the requests of a claim. Within a request, devices are
tried in the order of pools, slices and devices: combinations, not permutations. If a later request finds
nothing, the last device is taken back and the next one is tried. The stack is a list and not Python's own,
because a pod may ask for more devices than Python allows nested calls.

Requests that are alike can take the same devices in many orders. A long search therefore remembers the states
from which it found nothing: the same state, reached another way, has the same outcome.

Two shortcuts leave out what must fail, so they change no result. Where a device was tried in vain, one that
is alike is not tried. And a request for several devices with equal attributes passes over values that too few
devices have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import Enum, auto

from mooring.devices.claim_requests import MOST_RESULTS, Alternatives, PodRequests, Request
from mooring.devices.constraints import MatchAttribute
from mooring.devices.eligibility import TIMED_OUT, AllocationTimeout, Eligibility
from mooring.devices.holdings import Holdings, Taken
from mooring.devices.pools import Pool, PoolDevice
from mooring.errors import MooringError

#: After that many steps a search remembers its dead ends, and that many at most.
REMEMBER_AFTER = 512
_MOST_DEAD_ENDS = 1 << 16


class TooManyResults(MooringError):
    """Every solution has more results than a claim can have."""


class _Outcome(Enum):
    #: Every request has its devices.
    DONE = auto()
    #: The level on top of the stack has to try its next possibility.
    TRY = auto()
    #: There is no solution with the devices taken so far.
    FAILED = auto()
    #: Nor is there one with other devices, because the claim would have too many results.
    TOO_MANY = auto()


class _Level:
    """One decision: a device for a request, or one of its alternatives, or a claim that is complete."""

    __slots__ = (
        "all_too_many",
        "alternatives",
        "failed",
        "have",
        "next",
        "option",
        "place",
        "retries",
        "state",
        "taken",
    )

    def __init__(
        self,
        place: tuple[int, int],
        option: Request | None,
        alternatives: Alternatives | None,
        *,
        have: int = 0,
        start: int = 0,
    ) -> None:
        #: The claim and the request, by index.
        self.place = place
        #: What the device is for; None if this is no decision on a device.
        self.option = option
        #: The alternatives to decide between; None if this is no such decision.
        self.alternatives = alternatives
        #: How many devices the request has without this one.
        self.have = have
        #: Which eligible device, or which alternative, to try next.
        self.next = start
        self.taken: Taken | None = None
        #: Whether every alternative tried so far gives too many results.
        self.all_too_many = True
        #: The state in which the request was begun; None if it is not remembered.
        self.state: Hashable = None
        #: Whether a device was tried here in vain, and what such devices are like.
        self.retries = False
        self.failed: set[Hashable] = set()


class Search:
    """One search, on one node."""

    def __init__(
        self,
        requests: PodRequests,
        eligibility: Eligibility,
        holdings: Holdings,
        expired: Callable[[], bool] | None = None,
        *,
        remember_after: int = REMEMBER_AFTER,
    ) -> None:
        self._claims = requests.claims
        self._eligibility = eligibility
        self._holdings = holdings
        self._expired = expired
        self._stack: list[_Level] = []
        #: How many steps are made before dead ends are remembered.
        self._unremembered = remember_after
        #: The states in which nothing was found.
        self._dead_ends: dict[Hashable, _Outcome] = {}
        #: Whether a device can be passed over without a trace. A distinctAttribute forgets a value when a
        #: device is taken back, so what follows would differ. None until it matters.
        self._exact: bool | None = None
        #: Whether devices that are alike always have the same outcome. With alternatives, it may also be that
        #: there would be too many results.
        self._symmetric = False

    def run(self) -> bool:
        """Whether there is a solution. Then it is in the holdings.

        Raises SelectorError, NodeSelectorError, ConstraintViolated, TooManyResults, AllocationTimeout.
        """
        outcome = self._enter((0, 0))
        while outcome is not _Outcome.DONE:
            if outcome is _Outcome.TRY:
                outcome = self._try_next(self._stack[-1])
            elif self._stack:
                outcome = self._return_to(self._stack[-1], outcome)
            elif outcome is _Outcome.TOO_MANY:
                raise TooManyResults("allocation max size exceeded")
            else:
                return False
        return True

    def chosen(self) -> dict[Alternatives, Request]:
        """After success: which alternatives were taken."""
        return {
            level.alternatives: level.alternatives.options[level.next - 1]
            for level in self._stack
            if level.alternatives is not None
        }

    def _enter(
        self, place: tuple[int, int], option: Request | None = None, have: int = 0, start: int = 0
    ) -> _Outcome:
        """Go on to the next decision: of this request, or of the requests after it."""
        while True:
            if self._expired is not None and self._expired():
                raise AllocationTimeout(TIMED_OUT)
            claim, request = place
            if claim == len(self._claims):
                return _Outcome.DONE
            if request == len(self._claims[claim].requests):
                self._stack.append(_Level(place, None, None))
                place, option = (claim + 1, 0), None
                continue
            state: Hashable = None
            if option is None:
                self._unremembered -= 1
                if self._unremembered < 0:
                    state = place, self._holdings.state_for(claim)
                    if state in self._dead_ends:
                        return self._dead_ends[state]
                alternatives = self._claims[claim].requests[request]
                if alternatives.subrequests:
                    self._stack.append(_Level(place, None, alternatives))
                    self._stack[-1].state = state
                    return _Outcome.TRY
                option = alternatives.options[0]
            needed = self._eligibility.needed(option)
            if option.all_devices and not needed:
                return _Outcome.FAILED
            if have >= needed:
                place, option, have, start = (claim, request + 1), None, 0, 0
                continue
            if len(self._holdings.results[claim]) + needed - have > MOST_RESULTS:
                return _Outcome.TOO_MANY
            self._stack.append(_Level(place, option, None, have=have, start=start))
            self._stack[-1].state = state
            return _Outcome.TRY

    def _try_next(self, level: _Level) -> _Outcome:
        if level.option is not None:
            if level.option.all_devices:
                return self._take_given(level, level.option)
            return self._take_next(level, level.option)
        assert level.alternatives is not None
        if level.next == len(level.alternatives.options):
            return self._leave(_Outcome.TOO_MANY if level.all_too_many else _Outcome.FAILED)
        option = level.alternatives.options[level.next]
        level.next += 1
        return self._enter(level.place, option)

    def _take_given(self, level: _Level, option: Request) -> _Outcome:
        """A request for all devices needs the next one, whichever that is."""
        pool, candidate, amounts = self._eligibility.all_devices(option)[level.have]
        if not self._eligibility.obstructed(option, pool, candidate):
            level.taken = self._holdings.take(option, pool, candidate, amounts)
        if level.taken is None:
            return self._leave(_Outcome.FAILED)
        return self._enter(level.place, option, level.have + 1)

    def _take_next(self, level: _Level, option: Request) -> _Outcome:
        missing = option.count - level.have
        while found := self._eligibility.next_free(option, level.next, missing):
            level.next, (pool, candidate, amounts) = found
            if level.retries and self._must_fail(level, option, pool, candidate):
                continue
            level.taken = self._holdings.take(option, pool, candidate, amounts)
            if level.taken is not None:
                return self._enter(level.place, option, level.have + 1, level.next)
        return self._leave(_Outcome.FAILED)

    def _must_fail(self, level: _Level, option: Request, pool: Pool, candidate: PoolDevice) -> bool:
        """Whether one of the shortcuts applies to a device."""
        if level.failed and _likeness(pool, candidate) in level.failed:
            return True
        missing = option.count - level.have
        return bool(missing > 1 and self._exact) and self._too_few_match(option, candidate)

    def _too_few_match(self, option: Request, candidate: PoolDevice) -> bool:
        """Whether fewer devices than requested have the values that the claim's constraints compare."""
        constraints = [
            constraint
            for constraint in self._holdings.constraints[option.claim_index]
            if constraint.applies(option.base, option.full_name)
        ]
        if not constraints:
            return False
        number = self._eligibility.number_with_values_of(candidate, option, constraints)
        return number is not None and number < option.count

    def _return_to(self, level: _Level, outcome: _Outcome) -> _Outcome:
        """What follows if nothing was found after this decision."""
        if level.alternatives is not None:
            if outcome is _Outcome.FAILED:
                level.all_too_many = False
            return _Outcome.TRY
        if level.taken is None:
            # Another choice in an earlier claim may let this one do with fewer devices.
            return self._leave(_Outcome.FAILED)
        self._holdings.undo(level.taken)
        level.retries = True
        if self._exact is None:
            self._find_shortcuts()
        if self._symmetric and not level.taken.candidate.multiple:
            level.failed.add(_likeness(level.taken.pool, level.taken.candidate))
        level.taken = None
        assert level.option is not None
        if level.option.all_devices or outcome is _Outcome.TOO_MANY:
            return self._leave(outcome)
        return _Outcome.TRY

    def _find_shortcuts(self) -> None:
        """See which shortcuts change no result. Most searches end before they need one."""
        self._exact = all(
            isinstance(constraint, MatchAttribute)
            for constraints in self._holdings.constraints
            for constraint in constraints
        )
        self._symmetric = self._exact and not any(
            each.subrequests for claim in self._claims for each in claim.requests
        )

    def _leave(self, outcome: _Outcome) -> _Outcome:
        """Nothing is left to try on the level on top of the stack."""
        level = self._stack.pop()
        if level.state is not None and len(self._dead_ends) < _MOST_DEAD_ENDS:
            self._dead_ends[level.state] = outcome
        return outcome


def _likeness(pool: Pool, candidate: PoolDevice) -> Hashable:
    """Equal for free devices that differ, as far as a search can tell, only in names and places."""
    return pool.id, candidate.content, candidate.counters, candidate.taints
