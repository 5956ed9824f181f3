"""Labels a person gives to rows: good or bad, in two files of JSON lines that `gristmill train-classifier` takes.

    DIR/good.jsonl      --positive DIR/good.jsonl
    DIR/bad.jsonl       --negative DIR/bad.jsonl

A line is the whole row, so that any of its columns can be learnt from, and `labelled_in`, which says where it is. Both
files are small, since a person makes them, and are rewritten with every label: under another name first, so that a
crash leaves the old or the new one. Another label for the same row replaces the first.
"""

import base64
import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from gristmill.errors import ConfigError, MachineError
from gristmill.inspection.columns import Values
from gristmill.storage.atomic_write import explained
from gristmill.storage.file_system import disk_path

Label: TypeAlias = Literal["good", "bad"]
LABELS: tuple[Label, ...] = get_args(Label)
SOURCE = "labelled_in"


class Labels:
    """The labels in a directory. It is made with the first label."""

    def __init__(self, directory: str) -> None:
        self.directory = disk_path(directory, who="--labels")
        if self.directory.exists() and not self.directory.is_dir():
            raise ConfigError(f"--labels: expected a directory; got the file {str(self.directory)!r}")
        self._rows: dict[Label, dict[str, bytes]] = {label: self._read(label) for label in LABELS}

    def of(self, source: str) -> Label | None:
        """The label of a row, known by where it is."""
        return next((label for label in LABELS if source in self._rows[label]), None)

    def counts(self) -> Mapping[Label, int]:
        """How many rows have each label."""
        return {label: len(self._rows[label]) for label in LABELS}

    def put(self, source: str, values: Values, label: Label | None) -> None:
        """Give a row a label, another one, or none; what is on disk afterwards is complete."""
        before = {name: dict(rows) for name, rows in self._rows.items()}
        changed = [name for name in LABELS if self._rows[name].pop(source, None) is not None]
        if label is not None:
            row = {**{name: as_json(value) for name, value in values.items()}, SOURCE: source}
            self._rows[label][source] = msgspec.json.encode(row)
            changed.append(label)
        try:
            # First the file that gets the row: between the two it has both labels rather than none.
            for name in dict.fromkeys(reversed(changed)):
                self._write(name)
        except MachineError:  # a full disk: what is shown is what is on it
            self._rows = before
            raise

    def path(self, label: Label) -> Path:
        """The file of a label."""
        return self.directory / f"{label}.jsonl"

    def _read(self, label: Label) -> dict[str, bytes]:
        path = self.path(label)
        if not path.exists():
            return {}
        rows: dict[str, bytes] = {}
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                row = msgspec.json.decode(line, type=dict[str, object])
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                message = f"--labels: expected lines of JSON in {str(path)!r}; got in line {number}: {error}"
                raise ConfigError(
                    f"{message}. Mend or remove it: writing labels would overwrite what it holds"
                ) from None
            rows[str(row.get(SOURCE, f"line {number}"))] = line
        return rows

    def _write(self, label: Label) -> None:
        path = self.path(label)
        with explained(path):
            self.directory.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.new")
            with temporary.open("wb") as file:
                file.write(b"".join(line + b"\n" for line in self._rows[label].values()))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)


def as_json(value: object) -> object:
    """A value of Parquet as JSON has it: bytes in base 64, times as text."""
    if isinstance(value, dict):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, str):  # half a surrogate pair cannot be written
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float) else str(value)
