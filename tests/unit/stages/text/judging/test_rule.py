"""Bounds mean one thing everywhere: None is no bound, 0 is one, both ends are kept, and NaN is within none."""

import math

import numpy as np
import pytest

from gristmill.stages.text.judging.rule import Bounds, Rule, RuleSet, published

VALUES = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, math.nan])


@pytest.mark.parametrize(
    ("bounds", "held", "text"),
    [
        (Bounds(), [True] * 6, "x"),
        (Bounds(0, None), [False, True, True, True, True, False], "0 ≤ x"),
        (Bounds(None, 0), [True, True, False, False, False, False], "x ≤ 0"),
        (Bounds(0.5, 1), [False, False, True, True, False, False], "0.5 ≤ x ≤ 1"),
    ],
    ids=["none", "low", "high", "both"],
)
def test_bounds_hold_both_ends_and_say_so(bounds, held, text):
    assert bounds.hold(VALUES).tolist() == held
    assert [bounds.holds(value) for value in VALUES.tolist()] == held
    assert bounds.describe("x") == text


def test_a_rule_drops_what_is_out_of_bounds_and_keeps_what_is_not_a_number():
    assert Rule("r", "x", low=0, high=1).drops(VALUES).tolist() == [True, False, False, False, True, False]


def test_a_bound_of_zero_switches_off_a_published_rule_and_no_other():
    [rule] = published(Rule("r", "x", low=0, high=0))

    assert (rule.low, rule.high) == (None, None)
    assert Rule("r", "x", high=0).drops(np.array([0.0, 0.1])).tolist() == [False, True]


class ShortTexts(RuleSet):
    """A user's own set."""

    def rules(self):
        return [Rule("too_long", "characters", high=3), Rule("never", "characters")]

    def measure_document(self, text):
        return {"characters": len(text)}


def test_a_rule_without_bounds_is_not_applied():
    assert [rule.reason for rule in ShortTexts().applied_rules()] == ["too_long"]
    assert ShortTexts().judge_document("abcd").reason == "too_long"
    assert ShortTexts().judge_document("abc").reason is None
