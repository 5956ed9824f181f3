"""Reading and writing documents."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

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

# A program that reads one format does not load the others.
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

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
