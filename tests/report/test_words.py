"""Numbers in words keep their magnitude, their sign and what they count."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescale.posterior.diagnostics import Check
from bayescale.report import words

MAGNITUDE = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
positive = st.floats(1e-30, 1e30)
digits = st.integers(2, 6)


def read(text: str) -> float:
    """The number that a text stands for, read without the package."""
    found = re.fullmatch(r"(-?[\d.,]+(?:e-?\d+)?) ?([KMBT]?)", text)
    assert found, text
    return float(found[1].replace(",", "")) * MAGNITUDE[found[2]]


@given(positive, digits)
@pytest.mark.parametrize("write", [words.number, words.count])
def test_a_number_is_within_half_a_unit_of_its_last_digit(write, value: float, n: int) -> None:
    assert read(write(value, n)) == pytest.approx(value, rel=0.500001 * 10 ** (1 - n))
    assert read(words.number(-value, n)) == pytest.approx(-value, rel=0.500001 * 10 ** (1 - n))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (words.count(9.6e10), "96.0 B"),
        (words.count(1.4e12), "1.40 T"),
        (words.count(999.96e6), "1.00 B"),
        (words.count(1.5e15), "1.5e15"),
        (words.number(5.76e23), "5.76e23"),
        (words.number(1e24), "1e24"),
        (words.number(1e22, 1), "1e22"),
        (words.number(18.0), "18.0"),
        (words.number(999_999), "1e6"),
        (words.number(0.0), "0"),
        (words.number(None), "-"),
        (words.count(math.nan), "-"),
        (words.interval(7.22e10, 4.81e10, 1.1e11, words.count), "72.2 B [48.1 B, 110 B]"),
        (words.interval(1.9823, 1.9781, 1.9862), "1.982 [1.978, 1.986]"),
        (words.interval(None, None, None), "-"),
        (words.kind(0.9), "90 % equal-tailed"),
        (words.amount(1, "run"), "1 run"),
        (words.amount(1234, "run"), "1,234 runs"),
        (words.some(list("abcdef")), "a, b, c, d and 2 more"),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert text == expected


@given(st.floats(1e-6, 1e14), st.floats(1e-3, 3), st.floats(0.1, 0.9))
def test_an_interval_is_in_order_and_its_width_is_seen(median: float, width: float, share: float) -> None:
    lower, upper = median * math.exp(-width * share), median * math.exp(width * (1 - share))
    numbers = re.split(r"[\[\],]\s*", words.interval(median, lower, upper, words.count).replace(",0", "0"))
    shown = [read(words.count(v, words.digits(median, lower, upper))) for v in (lower, median, upper)]
    assert shown == sorted(shown)
    assert shown[2] - shown[0] == pytest.approx(upper - lower, rel=0.26)
    assert len([n for n in numbers if n.strip()]) == 3


def test_reach_says_when_a_plan_is_far_outside() -> None:
    assert words.reach(1.0) == "inside the data"
    assert words.reach(77.4) == "77.4 times the largest run"
    assert words.reach(101) == "101 times the largest run: far outside the data"


def test_status_names_what_failed_and_says_not_to_decide() -> None:
    checks = [Check("r_hat", 1.03, "1.01", "FAIL"), Check("e_bfmi", 0.9, "0.3", "PASS")]
    assert words.status("FAIL", checks) == "FAIL: r_hat 1.03 (limit 1.01); do not decide on this fit."
    assert words.status("PASS", checks) is None
    assert "not checked" in (words.status("UNKNOWN") or "")


@given(st.text())
def test_names_from_a_table_stay_on_one_line_without_control_characters(text: str) -> None:
    assert len(words.printable(text).splitlines()) <= 1
    assert words.printable(text).isprintable()
    assert len(words.printable(text)) == len(text)
