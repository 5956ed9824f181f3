"""Reading and writing documents."""

from gristmill.stages.text.io.reader import ArrowReader, CsvReader, JsonlReader, ParquetReader, TextReader
from gristmill.stages.text.io.writer import ArrowWriter, JsonlWriter, ParquetWriter

__all__ = [
    "ArrowReader", "ArrowWriter",
    "CsvReader",
    "JsonlReader", "JsonlWriter",
    "ParquetReader", "ParquetWriter",
    "TextReader",
]  # fmt: skip
