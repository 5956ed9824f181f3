"""Texts made of texts, as in Nemotron-CC: five tasks, and what becomes of their answers."""

from gristmill.stages.synthetic.nemotron_cc.base import BaseSyntheticStage
from gristmill.stages.synthetic.nemotron_cc.nemotron_cc import (
    DistillStage,
    DiverseQAPostProcessingStage,
    DiverseQAStage,
    ExtractKnowledgeStage,
    KnowledgeListPostProcessingStage,
    KnowledgeListStage,
    WikipediaParaphrasingStage,
)

__all__ = [
    "BaseSyntheticStage",
    "DistillStage",
    "DiverseQAPostProcessingStage",
    "DiverseQAStage",
    "ExtractKnowledgeStage",
    "KnowledgeListPostProcessingStage",
    "KnowledgeListStage",
    "WikipediaParaphrasingStage",
]
