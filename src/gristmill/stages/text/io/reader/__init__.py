"""Readers of documents."""

from gristmill.stages.text.io.reader.arrow import ArrowReader, ArrowReaderStage
from gristmill.stages.text.io.reader.csv import CsvReader, CsvReaderStage
from gristmill.stages.text.io.reader.jsonl import JsonlReader, JsonlReaderStage
from gristmill.stages.text.io.reader.parquet import ParquetReader, ParquetReaderStage
from gristmill.stages.text.io.reader.text import TextReader, TextReaderStage

__all__ = [
    "ArrowReader", "ArrowReaderStage",
    "CsvReader", "CsvReaderStage",
    "JsonlReader", "JsonlReaderStage",
    "ParquetReader", "ParquetReaderStage",
    "TextReader", "TextReaderStage",
]  # fmt: skip
