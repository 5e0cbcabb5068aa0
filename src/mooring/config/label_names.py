"""What is wrong with a label key or value, in the words of the API server.

Resource names, topology keys and the keys of selectors all follow the rule for label keys.
"""

from __future__ import annotations

import re

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_LONGEST_NAME = 63
_LONGEST_SUBDOMAIN = 253

# The API server has two spaces before "or", too.
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', "
    f" or '12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN}')"
)


def label_key_problems(key: str) -> list[str]:
    parts = key.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    problems = _prefix_problems(parts[0]) if len(parts) == 2 else []
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif _too_long(name, _LONGEST_NAME):
        problems.append(f"name part must be no more than {_LONGEST_NAME} bytes")
    if not re.fullmatch(_NAME, name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    problems = []
    if _too_long(value, _LONGEST_NAME):
        problems.append(f"must be no more than {_LONGEST_NAME} bytes")
    if not re.fullmatch(_VALUE, value):
        problems.append(_VALUE_RULE)
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if _too_long(prefix, _LONGEST_SUBDOMAIN):
        problems.append(f"prefix part must be no more than {_LONGEST_SUBDOMAIN} bytes")
    if not re.fullmatch(_SUBDOMAIN, prefix):
        problems.append(f"prefix part {_SUBDOMAIN_RULE}")
    return problems


def _too_long(text: str, limit: int) -> bool:
    return len(text.encode()) > limit
