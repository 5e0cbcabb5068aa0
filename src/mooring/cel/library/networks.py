"""IP addresses and networks (`ip("10.0.0.1")`, `cidr("10.0.0.0/8")`)."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import NO_OVERLOAD, CelError
from mooring.cel.library.formatting import quoted
from mooring.cel.types import BOOL, INT, STRING, Type
from mooring.cel.values import Opaque

IP = Type("opaque", "net.IP")
CIDR = Type("opaque", "net.CIDR")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Address(Opaque):
    """An IP address."""

    __slots__ = ("address",)
    type_name = IP.name

    def __init__(self, address: _Address) -> None:
        self.address = address

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.address.packed)

    def __str__(self) -> str:
        return str(self.address)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def equals(self, other: Any) -> bool | None:
        return self == other if isinstance(other, Address) else None


class Network(Opaque):
    """An address with the length of a prefix. Bits after the prefix are kept."""

    __slots__ = ("address", "bits")
    type_name = CIDR.name

    def __init__(self, address: _Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def size(self) -> int:  # type: ignore[override]
        return (self.bits + 7) // 8

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Network) and self.address == other.address and self.bits == other.bits
        )

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def equals(self, other: Any) -> bool | None:
        return self == other if isinstance(other, Network) else None

    def contains(self, address: _Address) -> bool:
        if type(address) is not type(self.address):
            return False
        shift = address.max_prefixlen - self.bits
        return int(address) >> shift == int(self.address) >> shift

    def masked(self) -> Network:
        shift = self.address.max_prefixlen - self.bits
        return Network(type(self.address)(int(self.address) >> shift << shift), self.bits)


def _parse(text: str) -> _Address:
    """An address as Go reads it; a zone is refused later. Raises ValueError with Go's reason."""
    for character in text:
        if character == ".":
            return _parse_v4(text)
        if character == ":":
            return _parse_v6(text)
        if character == "%":
            raise ValueError(f"ParseAddr({quoted(text)}): missing IPv6 address")
    raise ValueError(f"ParseAddr({quoted(text)}): unable to parse IP")


def _parse_v4(text: str) -> _Address:
    failed = f"ParseAddr({quoted(text)}): "
    fields = text.split(".")
    for position, field in enumerate(fields):
        for at, character in enumerate(field):
            if character not in "0123456789":
                raise ValueError(
                    f"{failed}unexpected character (at {quoted(field[at:] + _rest(fields, position))})"
                )
            if at and field[0] == "0":
                raise ValueError(f"{failed}IPv4 field has octet with leading zero")
            if int(field[: at + 1]) > 255:
                raise ValueError(f"{failed}IPv4 field has value >255")
        if not field:
            at_text = "." + ".".join(fields[position + 1 :]) if position + 1 < len(fields) else "."
            raise ValueError(
                f"{failed}IPv4 field must have at least one digit (at {quoted(at_text)})"
            )
        if position == 3 and len(fields) > 4:
            raise ValueError(f"{failed}IPv4 address too long")
    if len(fields) < 4:
        raise ValueError(f"{failed}IPv4 address too short")
    return ipaddress.IPv4Address(text)


def _rest(fields: list[str], position: int) -> str:
    return "".join("." + field for field in fields[position + 1 :])


def _parse_v6(text: str) -> _Address:
    address, percent, zone = text.partition("%")
    if percent and not zone:
        raise ValueError(f"ParseAddr({quoted(text)}): zone must be a non-empty string")
    # An IPv4 address at the end is read as strictly as one alone.
    tail = address.rpartition(":")[2]
    if "." in tail:
        _parse_v4(tail)
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        raise ValueError(f"ParseAddr({quoted(text)}): {_reason_v6(address)}") from None
    if percent:
        raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
    return parsed


def _reason_v6(text: str) -> str:
    bad = re.search(r"[^0-9a-fA-F:.]", text)
    if bad is not None:
        return f"unexpected character, want colon (at {quoted(text[bad.start() :])})"
    for group in text.split(":"):
        if "." not in group and len(group) > 4:
            return f"each group must have 4 or less digits (at {quoted(text[text.index(group) :])})"
    if text.count("::") > 1:
        return f"multiple :: in address (at {quoted(text[text.rindex('::') + 1 :])})"
    if "::" in text:
        return "the :: must expand to at least one field of zeros"
    if text.endswith(":"):
        return 'colon must be followed by more characters (at ":")'
    return "address string too short" if text.count(":") < 7 else "trailing garbage after address"


def parse_ip(text: str) -> Address:
    try:
        address = _parse(text)
    except ValueError as error:
        raise CelError(
            f"IP Address {quoted(text)} parse error during conversion from string: {error}"
        ) from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Address(address)


def _network(text: str) -> Network:
    """A network without the first words that a conversion puts before an error."""
    failed = f"network address parse error during conversion from string: netip.ParsePrefix({quoted(text)}): "
    before, slash, bits_text = text.rpartition("/")
    if not slash:
        raise CelError(f"{failed}no '/'")
    try:
        address = _parse(before)
    except ValueError as error:
        raise CelError(f"{failed}{error}") from None
    except CelError:
        raise CelError(f"{failed}IPv6 zones cannot be present in a prefix") from None
    if not re.fullmatch("0|[1-9][0-9]*", bits_text, re.ASCII):
        raise CelError(f"{failed}bad bits after slash: {quoted(bits_text)}")
    if len(bits_text) > 3 or int(bits_text) > address.max_prefixlen:
        raise CelError(f"{failed}prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Network(address, int(bits_text))


def parse_cidr(text: str) -> Network:
    try:
        return _network(text)
    except CelError as error:
        raise CelError(
            f"network address parse error during conversion from string: {error}"
        ) from None


def _is(parse: Any) -> Any:
    def holds(text: str) -> bool:
        try:
            parse(text)
        except CelError:
            return False
        return True

    return holds


def _contains_ip_text(network: Network, text: str) -> bool:
    try:
        return network.contains(parse_ip(text).address)
    except CelError:
        # The reference complains about the network here, not about the text.
        raise CelError(NO_OVERLOAD) from None


def _contains_cidr(network: Network, other: Network) -> bool:
    return network.bits <= other.bits and network.contains(other.address)


def _is_global_unicast(value: Address) -> bool:
    address = value.address
    if isinstance(address, ipaddress.IPv4Address) and int(address) in (0, 2**32 - 1):
        return False
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or _is_link_local(value)
    )


_V4_LINK_LOCAL = ipaddress.IPv4Network("169.254.0.0/16")
_V6_LINK_LOCAL = ipaddress.IPv6Network("fe80::/10")
_V4_LINK_LOCAL_MULTICAST = ipaddress.IPv4Network("224.0.0.0/24")


def _is_link_local(value: Address) -> bool:
    address = value.address
    if isinstance(address, ipaddress.IPv4Address):
        return address in _V4_LINK_LOCAL
    return address in _V6_LINK_LOCAL


def _is_link_local_multicast(value: Address) -> bool:
    address = value.address
    if isinstance(address, ipaddress.IPv4Address):
        return address in _V4_LINK_LOCAL_MULTICAST
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _is_loopback(value: Address) -> bool:
    return value.address.is_loopback


def _member(name: str, overload: str, args: Any, result: Any, implementation: Any) -> Function:
    return Function(name, [Overload(overload, args, result, implementation, member=True)])


FUNCTIONS = [
    Function("ip", [Overload("string_to_ip", (STRING,), IP, parse_ip)]),
    _member("family", "ip_family", (IP,), INT, lambda each: each.address.version),
    Function(
        "ip.isCanonical",
        [Overload("ip_is_canonical", (STRING,), BOOL, lambda text: str(parse_ip(text)) == text)],
    ),
    _member("isUnspecified", "ip_is_unspecified", (IP,), BOOL, lambda each: int(each.address) == 0),
    _member("isLoopback", "ip_is_loopback", (IP,), BOOL, _is_loopback),
    _member(
        "isLinkLocalMulticast", "ip_is_link_local_multicast", (IP,), BOOL, _is_link_local_multicast
    ),
    _member("isLinkLocalUnicast", "ip_is_link_local_unicast", (IP,), BOOL, _is_link_local),
    _member("isGlobalUnicast", "ip_is_global_unicast", (IP,), BOOL, _is_global_unicast),
    Function("isIP", [Overload("is_ip", (STRING,), BOOL, _is(parse_ip))]),
    Function("string", [Overload("ip_to_string", (IP,), STRING, str)]),
    Function("cidr", [Overload("string_to_cidr", (STRING,), CIDR, parse_cidr)]),
    _member("containsIP", "cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_ip_text),
    _member(
        "containsIP",
        "cidr_contains_ip_ip",
        (CIDR, IP),
        BOOL,
        lambda network, other: network.contains(other.address),
    ),
    _member(
        "containsCIDR",
        "cidr_contains_cidr_string",
        (CIDR, STRING),
        BOOL,
        lambda network, text: _contains_cidr(network, parse_cidr(text)),
    ),
    _member("containsCIDR", "cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr),
    _member("ip", "cidr_ip", (CIDR,), IP, lambda each: Address(each.address)),
    _member("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda each: each.bits),
    _member("masked", "cidr_masked", (CIDR,), CIDR, Network.masked),
    Function("isCIDR", [Overload("is_cidr", (STRING,), BOOL, _is(_network))]),
    Function("string", [Overload("cidr_to_string", (CIDR,), STRING, str)]),
]
