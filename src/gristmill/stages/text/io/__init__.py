"""Reading and writing documents."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gristmill.stages.text.io.reader import (
        ArrowReader,
        CsvReader,
        HuggingFaceReader,
        JsonlReader,
        LanceReader,
        ParquetReader,
        TextReader,
        WebDatasetReader,
    )
    from gristmill.stages.text.io.writer import (
        ArrowWriter,
        CsvWriter,
        JsonlWriter,
        LanceWriter,
        MegatronTokenizerWriter,
        ParquetWriter,
        TextWriter,
        WebDatasetWriter,
    )

__all__ = [
    "ArrowReader", "ArrowWriter",
    "CsvReader", "CsvWriter",
    "HuggingFaceReader",
    "JsonlReader", "JsonlWriter",
    "LanceReader", "LanceWriter",
    "MegatronTokenizerWriter",
    "ParquetReader", "ParquetWriter",
    "TextReader", "TextWriter",
    "WebDatasetReader", "WebDatasetWriter",
]  # fmt: skip

# A program that reads one format is not to load the others: each costs it, and every worker, a millisecond or two.
_HOMES = {
    "reader": (
        "ArrowReader",
        "CsvReader",
        "HuggingFaceReader",
        "JsonlReader",
        "LanceReader",
        "ParquetReader",
        "TextReader",
        "WebDatasetReader",
    ),
    "writer": (
        "ArrowWriter",
        "CsvWriter",
        "JsonlWriter",
        "LanceWriter",
        "MegatronTokenizerWriter",
        "ParquetWriter",
        "TextWriter",
        "WebDatasetWriter",
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
