"""Readers of documents."""

import importlib
from typing import TYPE_CHECKING

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

# A program that reads one format is not to load the others: each costs it, and every worker, a millisecond or two.
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
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a checker that saw this function would believe every misspelt name

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = found  # so that this function is not asked again
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
