"""`SemanticDeduplicationWorkflow` and `RankingStrategy` under the path users know."""

from gristmill.deduplication.embeddings import RankingStrategy
from gristmill.deduplication.semantic import SemanticDeduplicationWorkflow

__all__ = ["RankingStrategy", "SemanticDeduplicationWorkflow"]
