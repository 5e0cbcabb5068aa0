from __future__ import annotations

import pytest

from mooring.config.label_names import label_key_problems, label_value_problems

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIX_RULE = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.mark.parametrize("key", ["a", "A.b_c-9", "example.com/a", "a" * 63, f"{'a' * 253}/b"])
def test_a_label_key_is_a_name_with_an_optional_domain(key):
    assert label_key_problems(key) == []


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        ("", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("-a", [f"name part {NAME_RULE}"]),
        ("a\n", [f"name part {NAME_RULE}"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("/a", ["prefix part must be non-empty"]),
        ("Example.com/a", [PREFIX_RULE]),
        (f"{'a' * 254}/b", ["prefix part must be no more than 253 bytes"]),
        (
            "a/b/c",
            [
                f"a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')"
            ],
        ),
    ],
)
def test_what_is_no_label_key_is_explained_in_the_words_of_the_api_server(key, problems):
    assert label_key_problems(key) == problems


def test_a_label_value_may_be_empty_but_not_long():
    assert label_value_problems("") == []
    assert label_value_problems("a" * 64) == ["must be no more than 63 bytes"]
