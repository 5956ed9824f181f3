"""Check digits are right for real numbers and wrong for those with one digit changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.stages.text.modifiers.pii.checks import is_account_number, is_card_number


def luhn_by_definition(digits):
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


@given(st.text("0123456789", min_size=15, max_size=15).map("4{}".format))
def test_a_card_number_has_a_luhn_sum_of_zero(digits):
    assert is_card_number(digits) is luhn_by_definition(digits)


@pytest.mark.parametrize("digits", ["20141222000224", "9111111111111111", "411111111111111", "1" * 16])
def test_a_number_of_no_issuer_is_no_card(digits):
    assert not is_card_number(digits)


@given(position=st.integers(0, 15), digit=st.integers(0, 9))
def test_one_wrong_digit_makes_a_card_wrong(position, digit):
    right = "4111111111111111"
    wrong = f"{right[:position]}{digit}{right[position + 1 :]}"

    assert is_card_number(wrong) is (wrong == right)


@given(position=st.integers(4, 21), digit=st.integers(0, 9))
def test_one_wrong_digit_makes_an_account_wrong(position, digit):
    right = "DE89370400440532013000"
    wrong = f"{right[:position]}{digit}{right[position + 1 :]}"

    assert is_account_number(wrong) is (wrong == right)


@pytest.mark.parametrize("text", ["", "4111", "1" * 16])
def test_what_is_too_short_or_too_plain_is_no_number(text):
    assert not is_card_number(text)
    assert not is_account_number(f"DE{text}")
