"""Measure once, choose thresholds later: `score_pipeline` writes measures, `apply_rules` tries thresholds on them."""

from gristmill.workflows.thresholds.compare import Difference, Outcome, RuleOutcome, apply_rules
from gristmill.workflows.thresholds.rule import Rule, rules_of
from gristmill.workflows.thresholds.score import kept_pipeline, score_pipeline

__all__ = [
    "Difference",
    "Outcome",
    "Rule",
    "RuleOutcome",
    "apply_rules",
    "kept_pipeline",
    "rules_of",
    "score_pipeline",
]
