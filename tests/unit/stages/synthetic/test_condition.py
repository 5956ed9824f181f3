"""Which documents are asked about."""

import pytest

from gristmill.errors import ConfigError
from gristmill.stages.synthetic.condition import parse_condition


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("bucketed_results > 11", 12, True),
        ("bucketed_results > 11", 11, False),
        ("bucketed_results<=11", 11, True),
        ("score >= -0.5", -0.5, True),
        ("n != 3", 3, False),
        ("quality_level == 'low'", "low", True),
        ('quality_level == "low"', "high", False),
        ("quality_level != 'it''s'", "x", True),
        ("n > 0", None, False),
        ("n != 3", None, False),
    ],
)
def test_a_value_satisfies_a_condition_or_not(text, value, holds):
    assert parse_condition(text, who="stage").holds(value) is holds


@pytest.mark.parametrize("text", ["", "n", "n =", "n = 3", "n > low", "> 3", "n > 3 and m > 4", None, 3])
def test_what_is_not_a_condition_is_refused(text):
    with pytest.raises(ConfigError, match=r"^stage: expected where to compare a column"):
        parse_condition(text, who="stage")


def test_a_text_is_not_compared_with_a_number():
    with pytest.raises(ConfigError, match="expected 'n' to hold a number; got 'low'"):
        parse_condition("n > 3", who="stage").holds("low")
