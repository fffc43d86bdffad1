"""Budgets as people write them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from bayescale.frontier.budgets import read_budgets

RANGE = {"smallest": 6e6, "largest": 6e32}


@pytest.mark.parametrize(
    ("written", "flop"),
    [
        (1e22, [1e22]),
        (10**22, [1e22]),
        (2**70, [2.0**70]),
        ("1e22", [1e22]),
        (" 1.5E+24 ", [1.5e24]),
        (np.float32(2.0**80), [2.0**80]),
        (np.array(1e22), [1e22]),
        (np.array([1e22, 1e23]), [1e22, 1e23]),
        (pd.Series([10**9, 10**10]), [1e9, 1e10]),
        ((10**24, "1e22", 3e23), [1e24, 1e22, 3e23]),
        ((b for b in (1e22, 1e23)), [1e22, 1e23]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_of_any_kind_are_read(written, flop):
    """Integers beyond 64 bits do not overflow, text is read as a number, and the order is kept."""
    read = read_budgets(written, **RANGE)
    assert read.dtype == np.float64
    assert read.tolist() == flop


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (0, "not positive"),
        (-1e22, "not positive"),
        (float("inf"), "not finite"),
        (float("nan"), "not finite"),
        ("nan", "not finite"),
        ("inf", "not finite"),
        (10**400, "not finite"),
        ("1e400", "not finite"),
        ("abc", "not a number"),
        ("10^22", "not a number"),
        ("1e22FLOP", "not a number"),
        ("1_000", "not a number"),
        ("", "not a number"),
        (b"1e22", "bytes, not a number"),
        (True, "bool, not a number"),
        (np.True_, "bool, not a number"),
        (None, "NoneType, not a number"),
        (1e22 + 0j, "complex, not a number"),
        (Decimal("1e22"), "Decimal, not a number"),
        ([[1e22]], "list, not a number"),
        (1e-5, "less than the smallest run within the law's domain costs, 6e+06 FLOP"),
        (1e33, "more than the largest run within the law's domain costs, 6e+32 FLOP"),
        ([], "no budget in the list"),
        (np.array([]), "no budget in the list"),
    ],
    ids=repr,
)
def test_what_is_not_a_budget_is_refused(written, words):
    """The message says what is wrong, the value, and what a budget looks like."""
    with pytest.raises(ValueError, match="positive, finite number such as 1e22") as error:
        read_budgets(written, **RANGE)
    assert words in str(error.value)


def test_all_bad_budgets_come_in_one_message():
    """Each with its place and value; the good one is not named."""
    with pytest.raises(ValueError, match="Not a budget") as error:
        read_budgets([1e22, -1, "abc", True], **RANGE)
    message = str(error.value)
    assert "budget 2 of 4, -1, is not positive" in message
    assert "budget 3 of 4, 'abc', is text that is not a number" in message
    assert "budget 4 of 4, True, is of type bool" in message
    assert "budget 1 of 4" not in message
