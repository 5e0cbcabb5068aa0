"""Which devices a request can have by its selectors and amounts, judged once for devices that are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mooring.devices.capacity import Consumed, consumed_capacity
from mooring.devices.features import ALL_FEATURES, DeviceFeatures
from mooring.devices.pools import PoolDevice
from mooring.devices.selectors import SelectorCompileError, SelectorRuntimeError, compile_selector
from mooring.errors import MooringError
from mooring.objects.quantity import Quantity

if TYPE_CHECKING:
    from mooring.devices.cel_selectors import Selector

#: How many selections are remembered, and how many devices for each.
_MOST_SELECTIONS = 256
_MOST_DEVICES = 1 << 17


class SelectorError(MooringError):
    """A selector that does not compile, or that fails on a device."""


class _Failed(Exception):
    """A selector of the class or of the claim, which one and why. Whose it is, is not said."""

    def __init__(self, owner: str, text: str) -> None:
        super().__init__(text)
        self.owner = owner


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
        #: Content of devices on which a selector fails → whether it is one of the class or of the claim, and
        #: why. They are remembered because an evaluation up to the cost limit takes long.
        self._failures: dict[int, tuple[str, str]] = {}

    def judge(self, candidate: PoolDevice, class_name: str, claim: str) -> Fit:
        """Raises SelectorError."""
        fit = self.fits.get(candidate.content)
        if fit is None:
            if len(self.fits) + len(self._failures) >= _MOST_DEVICES:
                self.fits.clear()
                self._failures.clear()
            if candidate.content not in self._failures:
                try:
                    fit = self.fits[candidate.content] = self._judge(candidate)
                    return fit
                except _Failed as failed:
                    self._failures[candidate.content] = failed.owner, str(failed)
            owner, text = self._failures[candidate.content]
            name = class_name if owner == "class" else claim
            raise SelectorError(f"{owner} {name}: {text}")
        return fit

    def _judge(self, candidate: PoolDevice) -> Fit:
        """Raises _Failed."""
        for owner, expressions in (
            ("class", self._class_expressions),
            ("claim", self._expressions),
        ):
            number = self._first_refusing(candidate, owner, expressions)
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
            where = f"selector #{number}"
            try:
                selector = self._compiled.get(expression)
                if selector is None:
                    selector = self._compiled[expression] = compile_selector(
                        expression, list_attributes=self._features.list_attributes
                    )
                if not selector.matches(candidate.id.driver, candidate.device):
                    return number
            except SelectorCompileError as error:
                raise _Failed(owner, f"{where}: CEL compile error: {error}") from error
            except SelectorRuntimeError as error:
                raise _Failed(owner, f"{where}: CEL runtime error: {error}") from error
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
