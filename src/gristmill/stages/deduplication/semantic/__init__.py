"""`SemanticDeduplicationWorkflow` and `RankingStrategy` under the path users know."""

from gristmill.stages.deduplication.embeddings.ranking_strategy import RankingStrategy
from gristmill.workflows.deduplication.semantic_dedup import SemanticDeduplicationWorkflow

__all__ = ["RankingStrategy", "SemanticDeduplicationWorkflow"]
