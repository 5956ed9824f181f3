"""Writers of documents."""

import importlib
from typing import TYPE_CHECKING

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

# A program that reads one format is not to load the others: each costs it, and every worker, a millisecond or two.
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
