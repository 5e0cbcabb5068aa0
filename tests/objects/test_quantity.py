import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.quantity import (
    MAX_INT64,
    MIN_INT64,
    WRONG_FORMAT,
    WRONG_NUMBER,
    WRONG_SUFFIX,
    ZERO,
    Quantity,
    parse_quantity,
)

KI, MI, GI = 2**10, 2**20, 2**30


@pytest.mark.parametrize(
    ("text", "value", "milli_value"),
    [
        ("100m", 1, 100),
        ("1.5", 2, 1500),
        ("0.1m", 1, 1),
        ("100n", 1, 1),
        (".5", 1, 500),
        ("-1.5", -2, -1500),
        ("1k", 1000, 1_000_000),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
        ("0.1Ki", 103, 102_400),
        ("12e-3", 1, 12),
        ("1E3", 1000, 1_000_000),
        ("1E", 10**18, 0),
        # Every suffix.
        ("7", 7, 7000),
        ("7n", 1, 1),
        ("7u", 1, 1),
        ("7m", 1, 7),
        ("7M", 7 * 10**6, 7 * 10**9),
        ("7G", 7 * 10**9, 7 * 10**12),
        ("7T", 7 * 10**12, 7 * 10**15),
        ("7P", 7 * 10**15, 7 * 10**18),
        ("7Ki", 7 * KI, 7000 * KI),
        ("7Mi", 7 * MI, 7000 * MI),
        ("7Gi", 7 * GI, 7000 * GI),
        ("7Ti", 7 * 2**40, 7000 * 2**40),
        ("7Pi", 7 * 2**50, 7000 * 2**50),
        ("1e3", 1000, 1_000_000),
        ("1e+3", 1000, 1_000_000),
        # Spellings.
        ("+1", 1, 1000),
        ("1.", 1, 1000),
        ("007", 7, 7000),
        ("0", 0, 0),
        ("-0", 0, 0),
        ("+", 0, 0),
        (".", 0, 0),
        ("m", 0, 0),
        ("0.0000000001", 1, 1),
        # Rounding is upwards, however small the rest.
        ("1000000001n", 2, 1001),
        ("1.0000000001", 2, 1001),
        ("9223372036854775806.5", MAX_INT64, -1500),
    ],
)
def test_a_quantity_is_read_as_the_api_reads_it(text, value, milli_value):
    assert (parse_quantity(text).value, parse_quantity(text).milli_value) == (value, milli_value)


@pytest.mark.parametrize(
    ("text", "value", "milli_value"),
    [
        pytest.param("9Ei", MAX_INT64, -1000, id="binary, capped; then the low 64 bits"),
        pytest.param("10E", 0, 0, id="decimal in the small form, many powers of ten: 0"),
        pytest.param("10P", 10**16, 0, id="thousandths of 10P are 18 powers of ten away: 0"),
        pytest.param(
            "638395860445271G", -9058457669162326528, 0, id="nine powers at once: low bits"
        ),
        pytest.param("982737297252602764", 982737297252602764, 5059861345996528352, id="three"),
        pytest.param("10000000000000000000", -8446744073709551616, 1864712049423024128, id="wide"),
        pytest.param("1e99", 0, 0, id="beyond all"),
    ],
)
def test_what_does_not_fit_64_bits_ends_as_it_does_in_the_reference(text, value, milli_value):
    """Each row was computed by apimachinery v1.36.4."""
    assert (parse_quantity(text).value, parse_quantity(text).milli_value) == (value, milli_value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", WRONG_FORMAT),
        (" 1", WRONG_FORMAT),
        ("1 Gi", WRONG_FORMAT),
        ("1.2.3", WRONG_FORMAT),
        ("abc", WRONG_FORMAT),
        ("1e1.5", WRONG_FORMAT),
        ("١", WRONG_FORMAT),
        ("1\n", WRONG_FORMAT),
        ("1K", WRONG_SUFFIX),
        ("1ki", WRONG_SUFFIX),
        ("1mi", WRONG_SUFFIX),
        ("1e", WRONG_SUFFIX),
        ("1mm", WRONG_SUFFIX),
        ("1-1", WRONG_SUFFIX),
        ("1e99999999999999999999", WRONG_SUFFIX),
        ("Ei", WRONG_NUMBER),
        (".e-30", WRONG_NUMBER),
    ],
)
def test_what_is_no_quantity_is_refused_with_the_apis_words(text, problem):
    with pytest.raises(ValueError, match="quantit") as error:
        parse_quantity(text)

    assert str(error.value).startswith(problem)


@pytest.mark.parametrize(
    ("texts", "milli_value"),
    [
        (["0.5m", "0.5m"], 1),  # summed exactly, rounded once
        (["100m", "1", "1.5"], 2600),
        (["1Ki", "1k"], 2_024_000),
        (["0", "5"], 5000),
        (["5", "-5"], 0),
    ],
)
def test_sums_are_exact(texts, milli_value):
    total = ZERO
    for text in texts:
        total = total.plus(parse_quantity(text))

    assert total.milli_value == milli_value


@pytest.mark.parametrize(
    ("text", "rounded"),
    [("1n", "1m"), ("1.0001", "1001m"), ("-1n", "-1m"), ("3", "3"), ("1.5Gi", "1536Mi")],
)
def test_the_api_keeps_thousandths(text, rounded):
    assert parse_quantity(text).rounded_up() == parse_quantity(rounded)


def test_equal_quantities_may_be_spelled_differently():
    spellings = ["1Gi", "1024Mi", "1073741824", "1073741824000m", "1.073741824e9"]

    assert len({parse_quantity(text) for text in spellings}) == 1


def test_reading_a_quantity_twice_gives_the_same_object():
    assert parse_quantity("128Mi") is parse_quantity("128Mi")


@pytest.mark.parametrize(
    ("text", "in_units", "in_thousandths"),
    [
        ("9223372036854775807", True, False),
        ("9223372036854775808", False, False),
        ("1", True, True),
    ],
)
def test_whether_an_amount_can_be_counted(text, in_units, in_thousandths):
    quantity = parse_quantity(text)

    assert (quantity.fits(), quantity.fits(-3)) == (in_units, in_thousandths)


NUMBERS = st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,12})?", fullmatch=True)
SUFFIXES = st.sampled_from(
    ["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-7", "e12", "e-20", "e70"]
)


@given(NUMBERS, SUFFIXES)
def test_what_is_written_reads_back_equal(number, suffix):
    quantity = parse_quantity(number + suffix)

    assert parse_quantity(str(quantity)) == quantity


@given(NUMBERS, SUFFIXES)
def test_an_amount_always_fits_64_bits(number, suffix):
    quantity = parse_quantity(number + suffix)

    assert MIN_INT64 <= quantity.value <= MAX_INT64
    assert MIN_INT64 <= quantity.milli_value <= MAX_INT64


@given(st.integers(0, 10**15), st.integers(-9, 3), st.integers(0, 10**15), st.integers(-9, 3))
def test_sums_and_comparisons_are_those_of_exact_numbers(one, one_scale, other, other_scale):
    a, b = Quantity(one, one_scale), Quantity(other, other_scale)
    exact_a, exact_b = one * 10 ** (one_scale + 9), other * 10 ** (other_scale + 9)

    assert a.plus(b) == Quantity(exact_a + exact_b, -9)
    assert a.exceeds(b) == (exact_a > exact_b)
    assert (a == b) == (exact_a == exact_b)


@given(st.integers(0, 10**17), st.integers(-9, 0))
def test_rounding_is_never_down_and_never_by_a_whole(number, scale):
    quantity = Quantity(number, scale)
    up = Quantity(quantity.value)

    assert not quantity.exceeds(up)
    assert Quantity(1).plus(quantity).exceeds(up)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1Gi", "1Gi"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("8Gi", "8Gi"),
        ("3000Mi", "3000Mi"),
        ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"),
        ("1.0001Ki", "1024102400u"),
        ("-2Ki", "-2Ki"),
        ("0Gi", "0"),
        ("1G", "1G"),
        ("1000M", "1G"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1e9", "1e9"),
        ("15e2", "1500"),
        ("1E", "1E"),
        ("10E3", "10e3"),
        ("0", "0"),
        ("16Ei", "9223372036854775807"),
    ],
)
def test_the_canonical_form_keeps_the_format_that_was_read(text, canonical):
    quantity = parse_quantity(text)

    assert quantity.canonical == canonical
    assert parse_quantity(canonical) == quantity


@given(
    number=st.integers(-(10**6), 10**6), suffix=st.sampled_from(["", "Ki", "Mi", "Gi", "m", "M"])
)
def test_the_canonical_form_is_read_as_the_same_quantity_and_written_the_same(number, suffix):
    quantity = parse_quantity(f"{number}{suffix}")
    again = parse_quantity(quantity.canonical)

    assert again == quantity
    assert again.canonical == quantity.canonical
    assert again.nanos == quantity.nanos
