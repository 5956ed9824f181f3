"""Measure once, choose thresholds later: `score_pipeline` writes measures, `apply_rules` tries thresholds on them."""

from gristmill.workflows.thresholds.compare import Difference, Outcome, RuleOutcome, apply_rules
from gristmill.workflows.thresholds.rule import FilterRule, rules_of
from gristmill.workflows.thresholds.score import score_pipeline, with_rules
from gristmill.workflows.thresholds.scored import Scored, forget, noted

__all__ = [
    "Difference",
    "FilterRule",
    "Outcome",
    "RuleOutcome",
    "Scored",
    "apply_rules",
    "forget",
    "noted",
    "rules_of",
    "score_pipeline",
    "with_rules",
]
