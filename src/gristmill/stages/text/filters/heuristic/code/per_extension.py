"""`PerExtensionFilter`: limits that depend on a program's language and its file's extension."""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError, nearest
from gristmill.stages.text.filters.heuristic.code.size import count_letters
from gristmill.stages.text.judging.document_filter import Bounds, DocumentFilter

_COLUMNS = ("language", "extension", "Include", "Long_line_threshold", "Alphanum_threshold", "Alpha filter")
_MAX_MEAN_LINE = 100  # where lines are limited at all
_SPECIAL_NAMES = {"C#": "c-sharp", "F#": "f-sharp"}


@dataclass(frozen=True)
class Limits:
    """A line of the table. None is no limit."""

    include: bool
    max_line: int | None
    min_alphanumeric_share: float | None
    min_letter_share: float | None

    def allow(self, text: str) -> bool:
        """Whether a program is within the limits."""
        lines = text.split("\n")
        if self.max_line and max(map(len, lines)) > self.max_line:
            return False
        if self.max_line and (len(text) + 1) / len(lines) - 1 > _MAX_MEAN_LINE:
            return False
        if self.min_alphanumeric_share and sum(map(str.isalnum, text)) < self.min_alphanumeric_share * len(text):
            return False
        return not (self.min_letter_share and count_letters(text) < self.min_letter_share * len(text))


@dataclass
class PerExtensionFilter(DocumentFilter[int]):
    """Keep programs within the limits that a table has for their language and extension (StarCoder, Li et al., 2023).

    `metadata_file` is CSV with the columns language, extension, Include (1 or 0), Long_line_threshold,
    Alphanum_threshold and Alpha filter; an empty field sets no limit. Files the table does not list are dropped.
    """

    measure: ClassVar[str] = "within the limits"
    score_type: ClassVar[pa.DataType] = pa.int64()

    lang: str
    extension: str | None
    metadata_file: str = "code_meta.csv"
    limits: Limits | None = field(default=None, init=False, repr=False)  # so that another table is another filter

    def __post_init__(self) -> None:
        if not Path(self.metadata_file).is_file():
            raise ConfigError(
                f"PerExtensionFilter: expected metadata_file to be a CSV file; got {self.metadata_file!r}. gristmill "
                "ships none: copy code_meta.csv from NeMo Curator, or write your own"
            )
        with Path(self.metadata_file).open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            missing = [column for column in _COLUMNS if column not in (rows.fieldnames or ())]
            if missing:
                raise ConfigError(f"{self.metadata_file}: expected the columns {missing}; got {rows.fieldnames}")
            table = {(row["language"], row["extension"]): _limits(row) for row in rows}
        wanted = _SPECIAL_NAMES.get(self.lang, self.lang.lower().replace(" ", "-"))
        languages = {language for language, _ in table}
        if wanted not in languages:
            hint = nearest(wanted, languages)
            raise ConfigError(
                f"PerExtensionFilter: expected lang to be in {self.metadata_file}; got {self.lang!r}{hint}"
            )
        self.limits = table.get((wanted, self.extension or ""))

    def score_document(self, text: str) -> int:
        return int(self.limits is not None and self.limits.include and self.limits.allow(text))

    def bounds(self) -> Bounds:
        return 1, None


def _limits(row: dict[str, str]) -> Limits:
    longest = _number(row["Long_line_threshold"])
    return Limits(
        row["Include"] == "1",
        None if longest is None else int(longest),
        _number(row["Alphanum_threshold"]),
        _number(row["Alpha filter"]),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # left empty, or a remark
        return None
