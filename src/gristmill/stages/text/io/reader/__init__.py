"""Readers of documents."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

if TYPE_CHECKING:
    from gristmill.stages.text.io.reader.arrow import ArrowReader, ArrowReaderStage
    from gristmill.stages.text.io.reader.csv import CsvReader, CsvReaderStage
    from gristmill.stages.text.io.reader.huggingface import HuggingFaceReader
    from gristmill.stages.text.io.reader.jsonl import JsonlReader, JsonlReaderStage
    from gristmill.stages.text.io.reader.lance import LanceReader, LanceReaderStage
    from gristmill.stages.text.io.reader.parquet import ParquetReader, ParquetReaderStage
    from gristmill.stages.text.io.reader.text import TextReader, TextReaderStage
    from gristmill.stages.text.io.reader.webdataset import WebDatasetReader, WebDatasetReaderStage

__all__ = [
    "ArrowReader", "ArrowReaderStage",
    "CsvReader", "CsvReaderStage",
    "HuggingFaceReader",
    "JsonlReader", "JsonlReaderStage",
    "LanceReader", "LanceReaderStage",
    "ParquetReader", "ParquetReaderStage",
    "TextReader", "TextReaderStage",
    "WebDatasetReader", "WebDatasetReaderStage",
]  # fmt: skip

# A program that reads one format does not load the others.
_HOMES = {
    "arrow": (
        "ArrowReader",
        "ArrowReaderStage",
    ),
    "csv": (
        "CsvReader",
        "CsvReaderStage",
    ),
    "huggingface": ("HuggingFaceReader",),
    "jsonl": (
        "JsonlReader",
        "JsonlReaderStage",
    ),
    "lance": (
        "LanceReader",
        "LanceReaderStage",
    ),
    "parquet": (
        "ParquetReader",
        "ParquetReaderStage",
    ),
    "text": (
        "TextReader",
        "TextReaderStage",
    ),
    "webdataset": (
        "WebDatasetReader",
        "WebDatasetReaderStage",
    ),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
