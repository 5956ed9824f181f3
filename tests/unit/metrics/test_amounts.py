"""Amounts are short and never mislead by rounding."""

import pytest

from gristmill.metrics.amounts import count, duration, share, size


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (999.6, "1.00k"), (1000, "1.00k"), (12345, "12.3k"), (123456, "123k"), (2.5e6, "2.50M")],
)  # fmt: skip
def test_a_count_is_scaled(number, text):
    assert count(number) == text


def test_a_size_has_decimal_units():
    assert [size(n) for n in (10, 1500, 1.5e9)] == ["10 B", "1.50 kB", "1.50 GB"]


def test_a_duration_shows_hours_only_if_there_are_any():
    assert [duration(s) for s in (0, 59.9, 75, 3675)] == ["0:00", "0:59", "1:15", "1:01:15"]


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "0 %"), (0, 5, "0 %"), (1, 10**6, "<0.1 %"), (1, 20, "5.0 %"), (1, 3, "33 %"), (3, 3, "100 %")],
)
def test_something_is_never_shown_as_nothing(part, whole, text):
    assert share(part, whole) == text
