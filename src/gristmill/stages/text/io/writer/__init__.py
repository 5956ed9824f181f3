"""Writers of documents."""

from gristmill.stages.text.io.writer.arrow import ArrowWriter
from gristmill.stages.text.io.writer.jsonl import JsonlWriter
from gristmill.stages.text.io.writer.parquet import ParquetWriter

__all__ = ["ArrowWriter", "JsonlWriter", "ParquetWriter"]
