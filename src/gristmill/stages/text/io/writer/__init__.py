"""Writers of documents."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

if TYPE_CHECKING:
    from gristmill.stages.text.io.writer.arrow import ArrowWriter
    from gristmill.stages.text.io.writer.csv import CsvWriter
    from gristmill.stages.text.io.writer.jsonl import JsonlWriter
    from gristmill.stages.text.io.writer.lance import LanceWriter, commit_lance_checkpoint
    from gristmill.stages.text.io.writer.megatron import MegatronTokenizerWriter
    from gristmill.stages.text.io.writer.parquet import ParquetWriter
    from gristmill.stages.text.io.writer.text import TextWriter
    from gristmill.stages.text.io.writer.webdataset import WebDatasetWriter

__all__ = [
    "ArrowWriter",
    "CsvWriter",
    "JsonlWriter",
    "LanceWriter",
    "MegatronTokenizerWriter",
    "ParquetWriter",
    "TextWriter",
    "WebDatasetWriter",
    "commit_lance_checkpoint",
]

# A program that reads one format does not load the others.
_HOMES = {
    "arrow": ("ArrowWriter",),
    "csv": ("CsvWriter",),
    "jsonl": ("JsonlWriter",),
    "lance": (
        "LanceWriter",
        "commit_lance_checkpoint",
    ),
    "megatron": ("MegatronTokenizerWriter",),
    "parquet": ("ParquetWriter",),
    "text": ("TextWriter",),
    "webdataset": ("WebDatasetWriter",),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
