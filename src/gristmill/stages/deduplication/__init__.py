"""Deduplication as stages of any pipeline. The workflows, which read and write too, are in the modules below."""

from gristmill.deduplication.exact_deduplication import ExactDeduplication
from gristmill.deduplication.fuzzy_deduplication import FuzzyDeduplication
from gristmill.deduplication.part_deduplication import PartDeduplication
from gristmill.deduplication.semantic_deduplication import SemanticDeduplication

__all__ = ["ExactDeduplication", "FuzzyDeduplication", "PartDeduplication", "SemanticDeduplication"]
