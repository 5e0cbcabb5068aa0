"""Which devices a request can have by its selectors and amounts, judged once for devices that are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mooring.devices.capacity import Consumed, consumed_capacity
from mooring.devices.features import ALL_FEATURES, DeviceFeatures
from mooring.devices.pools import PoolDevice
from mooring.devices.selectors import (
    Selector,
    SelectorCompileError,
    SelectorRuntimeError,
    compile_selector,
)
from mooring.errors import MooringError
from mooring.objects.quantity import Quantity

#: How many selections are remembered, and how many devices for each.
_MOST_SELECTIONS = 256
_MOST_DEVICES = 1 << 17


class SelectorError(MooringError):
    """A selector that does not compile, or that fails on a device."""


class Fit(NamedTuple):
    """What selectors and capacities say of a device, whatever is in use."""

    #: Why not; empty if the device will do.
    refused: str
    #: What the request consumes of the device.
    amounts: tuple[Consumed, ...] = ()
    #: Whether it is the selectors that refuse the device.
    by_selector: bool = False


class Selection:
    """The selectors of a class and of a request, and the amounts requested."""

    def __init__(
        self,
        class_expressions: tuple[str, ...],
        expressions: tuple[str, ...],
        amounts: Mapping[str, Quantity],
        features: DeviceFeatures,
    ) -> None:
        self._features = features
        self._class_expressions = class_expressions
        self._expressions = expressions
        self._amounts = amounts
        self._compiled: dict[str, Selector] = {}
        #: Content of devices → what is said of them.
        self.fits: dict[int, Fit] = {}

    def judge(self, candidate: PoolDevice, class_name: str, claim: str) -> Fit:
        """Raises SelectorError. Errors are not remembered: their text names the class or the claim."""
        fit = self.fits.get(candidate.content)
        if fit is None:
            if len(self.fits) >= _MOST_DEVICES:
                self.fits.clear()
            fit = self.fits[candidate.content] = self._judge(candidate, class_name, claim)
        return fit

    def _judge(self, candidate: PoolDevice, class_name: str, claim: str) -> Fit:
        for owner, name, expressions in (
            ("class", class_name, self._class_expressions),
            ("claim", claim, self._expressions),
        ):
            number = self._first_refusing(candidate, f"{owner} {name}", expressions)
            if number is not None:
                # Other classes and claims with the same selectors share this text.
                text = f"selector #{number} of the {owner}: {expressions[number]}"
                return Fit(text, by_selector=True)
        if not self._features.consumable_capacity:
            return Fit("")
        amounts = consumed_capacity(candidate.device, self._amounts)
        return Fit(amounts) if isinstance(amounts, str) else Fit("", amounts)

    def _first_refusing(
        self, candidate: PoolDevice, owner: str, expressions: Sequence[str]
    ) -> int | None:
        for number, expression in enumerate(expressions):
            where = f"{owner}: selector #{number}"
            try:
                selector = self._compiled.get(expression)
                if selector is None:
                    selector = self._compiled[expression] = compile_selector(
                        expression, list_attributes=self._features.list_attributes
                    )
                if not selector.matches(candidate.id.driver, candidate.device):
                    return number
            except SelectorCompileError as error:
                raise SelectorError(f"{where}: CEL compile error: {error}") from error
            except SelectorRuntimeError as error:
                raise SelectorError(f"{where}: CEL runtime error: {error}") from error
        return None


class Selections:
    """The selections in use; the one that was not asked for longest is forgotten first."""

    def __init__(self, features: DeviceFeatures = ALL_FEATURES) -> None:
        self.features = features
        self._known: dict[object, Selection] = {}

    def of(
        self,
        class_expressions: tuple[str, ...],
        expressions: tuple[str, ...],
        amounts: Mapping[str, Quantity],
    ) -> Selection:
        written = tuple(
            (name, type(each), each.unscaled, each.scale) for name, each in sorted(amounts.items())
        )
        key = class_expressions, expressions, written
        selection = self._known.pop(key, None)
        if selection is None:
            selection = Selection(class_expressions, expressions, amounts, self.features)
            if len(self._known) >= _MOST_SELECTIONS:
                del self._known[next(iter(self._known))]
        self._known[key] = selection
        return selection
