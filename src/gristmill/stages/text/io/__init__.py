"""Reading and writing documents."""

from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import ArrowWriter, JsonlWriter, ParquetWriter

__all__ = ["ArrowWriter", "JsonlReader", "JsonlWriter", "ParquetWriter"]
