"""Long texts in chunks a language model can take, and chunks put together again."""

from gristmill.stages.math.modifiers.chunk_merge import ChunkMergeStage
from gristmill.stages.math.modifiers.token_splitter import TokenSplitterStage

__all__ = ["ChunkMergeStage", "TokenSplitterStage"]
