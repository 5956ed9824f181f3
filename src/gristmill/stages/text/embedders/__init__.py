"""Embeddings of texts: by a transformer, by a table of token vectors, by vLLM (`embedders.vllm`)."""

from gristmill.stages.text.embedders.base import EmbeddingCreatorStage

__all__ = ["EmbeddingCreatorStage"]
