"""`LanceWriter`: batches as fragments of a Lance dataset; `commit_lance_checkpoint` makes them one new version.

    batch ──▶ fragment files, which no version of the dataset names
          └─▶ <commit_path>/<task id>.json, which names them: published by the ledger, as any output is
    commit_lance_checkpoint ──▶ all records together become one version

Fragments of an attempt that was lost are never named by a record, so they are in no version. Lance removes such files
when it cleans a dataset up.
"""

import base64
import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import pyarrow as pa
import xxhash

from gristmill.errors import ConfigError, NoInputError, check_installed, nearest, require
from gristmill.stages.base import ProcessingStage
from gristmill.stages.io.files import check_kwargs, storage_options, write_output
from gristmill.stages.text.io.reader.lance import EXTRA, OWN, open_dataset
from gristmill.storage.atomic_write import machine_error, make_directory, write_file
from gristmill.storage.file_system import StorageOptions, absolute, file_system, is_url
from gristmill.storage.open_read import read_start
from gristmill.tasks import DocumentBatch, FileGroupTask

MODES = ("create", "append", "overwrite")
MARKER = ".committed.json"
LOCK = ".commit.lock"
_RECORD_BYTES = 1 << 26


@dataclass(eq=False)
class LanceWriter(ProcessingStage[DocumentBatch, FileGroupTask]):
    """Write each batch as fragments of the dataset `path`, and a record of them to `commit_path`.

    None of it is in the dataset until `commit_lance_checkpoint(path, commit_path)` makes all of it one version.
    `mode` says what that does: "create" a dataset that is not there, "append" to one, or "overwrite" its rows. Columns
    that begin with `__lance_` are left out. All batches must have one schema: give `schema` where they may differ, as
    when a column is null throughout a batch. `write_kwargs` takes `storage_options`, `max_rows_per_file`,
    `max_bytes_per_file` and `data_storage_version`.
    """

    known_kwargs: ClassVar[frozenset[str]] = frozenset(
        {"storage_options", "max_rows_per_file", "max_bytes_per_file", "data_storage_version"}
    )

    path: str
    commit_path: str
    schema: pa.Schema | None = None
    write_kwargs: Mapping[str, object] = field(default_factory=dict)
    fields: list[str] | None = None
    name: str = "lance_writer"
    mode: Literal["create", "append", "overwrite"] = "create"

    def __post_init__(self) -> None:
        self.path, self.commit_path = str(self.path), str(self.commit_path)
        check_kwargs(self.name, "write_kwargs", self.write_kwargs, self.known_kwargs)
        if self.mode not in MODES:
            raise ConfigError(
                f"{self.name}: expected mode of {MODES}; got {self.mode!r}{nearest(str(self.mode), MODES)}"
            )

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.fields or [])

    def check_ready(self) -> None:
        check_installed("lance", extra=EXTRA)

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "schema": None if self.schema is None else str(self.schema)}

    def make_paths_absolute(self) -> None:
        self.path, self.commit_path = absolute(self.path), absolute(self.commit_path)

    def output_directory(self) -> str:
        return self.commit_path

    def output_options(self) -> Mapping[str, object]:
        return storage_options(self.write_kwargs) or {}

    def prepare_output(self, *, resuming: bool) -> list[str]:
        """Refuse what the commit would refuse, before anything is written. Nothing is removed."""
        if not resuming:
            marker = f"{self.commit_path.rstrip('/')}/{MARKER}"
            if file_system(marker, self.output_options()).status(marker) is not None:
                raise ConfigError(
                    f"{self.name}: expected a commit_path of its own for each run; {self.commit_path!r} holds records "
                    "that are committed already"
                )
            self._check_mode()
        make_directory(self.commit_path, storage_options=storage_options(self.write_kwargs))
        return []

    def _check_mode(self) -> None:
        try:
            version = open_dataset(self.path, None, storage_options(self.write_kwargs), self.name).version
        except NoInputError:
            if self.mode == "append":
                raise
            return
        if self.mode == "create":
            raise ConfigError(
                f"{self.name}: expected no dataset in {self.path!r} (mode 'create'); it has version {version}. "
                "mode 'append' adds to it, 'overwrite' replaces its rows"
            )

    def process(self, task: DocumentBatch) -> FileGroupTask:
        """Write fragments and their record; return the record, or nothing if there are no documents."""
        if not task.num_items:
            return FileGroupTask(task.dataset_name, [])
        table = self._table(task)
        options = storage_options(self.write_kwargs)
        kwargs = {key: value for key, value in self.write_kwargs.items() if key != "storage_options"}
        with _failures_of_lance(self.path):
            fragments = require("lance.fragment", extra=EXTRA).write_fragments(
                table,
                self.path,
                schema=table.schema,
                mode="append" if self.mode == "append" else "overwrite",
                storage_options=dict(options) if options else None,
                **kwargs,
            )
        record = {
            "mode": self.mode,
            "dataset": self.path,
            "schema": base64.b64encode(table.schema.serialize().to_pybytes()).decode(),
            "rows": task.num_items,
            "fragments": [fragment.to_json() for fragment in fragments],
        }
        content = json.dumps(record).encode()
        stem = task.task_id or xxhash.xxh3_128(content).hexdigest()
        final = f"{self.commit_path.rstrip('/')}/{stem}.json"
        return write_output(self.context, final, [content], task, storage_options=options)

    def _table(self, batch: DocumentBatch) -> pa.Table:
        table = batch.to_pyarrow()
        wanted = [name for name in self.fields or table.column_names if not name.startswith(OWN)]
        table = table.select(wanted)
        return table if self.schema is None else table.select(self.schema.names).cast(self.schema)


@contextlib.contextmanager
def _failures_of_lance(path: str) -> Iterator[None]:
    """Raise the system's error: Lance has its number in the text alone, "… (os error 28), /…/structural.rs:190:9"."""
    try:
        yield
    except OSError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise machine_error(path, OSError(int(number[1]), os.strerror(int(number[1])))) from error


class _Records(NamedTuple):
    """What the records of a run say together."""

    mode: str
    schema: pa.Schema
    fragments: list[dict[str, Any]]

    def files(self) -> set[str]:
        """The data files of all fragments: no other dataset, and no other run, has files of these names."""
        return {file["path"] for fragment in self.fragments for file in fragment["files"]}


def commit_lance_checkpoint(
    dataset_path: str,
    checkpoint_path: str,
    *,
    dataset_storage_options: Mapping[str, object] | None = None,
    checkpoint_storage_options: Mapping[str, object] | None = None,
) -> int:
    """Make everything a run of `LanceWriter` has written one new version of the dataset; return the version.

    It may be called again, even after a crash at any moment: what is committed already is found by its files, and its
    version returned. Two calls at once wait for each other if the checkpoint is on a disk.
    """
    dataset, checkpoint = absolute(str(dataset_path)), absolute(str(checkpoint_path)).rstrip("/")
    with _alone(checkpoint):
        marker = f"{checkpoint}/{MARKER}"
        if file_system(marker, checkpoint_storage_options).status(marker) is not None:
            said = json.loads(read_start(marker, _RECORD_BYTES, storage_options=checkpoint_storage_options))
            _check_dataset(str(said["dataset"]), dataset, checkpoint)
            return int(said["version"])
        records = _read_records(dataset, checkpoint, checkpoint_storage_options)
        version = _version_with(records, dataset, dataset_storage_options)
        if version is None:
            version = _commit(records, dataset, dataset_storage_options)
        content = json.dumps({"dataset": dataset, "version": version}).encode()
        write_file(marker, [content], storage_options=checkpoint_storage_options)
        return version


@contextlib.contextmanager
def _alone(checkpoint: str) -> Iterator[None]:
    if is_url(checkpoint) or not Path(checkpoint).is_dir():
        yield
        return
    with (Path(checkpoint) / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check_dataset(said: str, dataset: str, checkpoint: str) -> None:
    if said != dataset:
        raise ConfigError(
            f"commit_lance_checkpoint: expected records of {dataset!r} in {checkpoint!r}; got those of {said!r}"
        )


def _read_records(dataset: str, checkpoint: str, options: StorageOptions | None) -> _Records:
    paths = sorted(_record_paths(checkpoint, options))
    if not paths:
        raise NoInputError(f"commit_lance_checkpoint: expected records of LanceWriter in {checkpoint!r}; got none")
    mode, schema, fragments = "", None, []
    for path in paths:
        record = json.loads(read_start(path, _RECORD_BYTES, storage_options=options))
        _check_dataset(str(record["dataset"]), dataset, checkpoint)
        own = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(record["schema"])))
        if schema is not None and not own.equals(schema):
            raise ConfigError(
                f"commit_lance_checkpoint: expected one schema in all records; {path} has {_differing(schema, own)}. "
                "LanceWriter(schema=...) writes all batches alike"
            )
        mode, schema = str(record["mode"]), own
        fragments += record["fragments"]
    assert schema is not None  # noqa: S101  # there is a record
    return _Records(mode, schema, fragments)


def _record_paths(checkpoint: str, options: StorageOptions | None) -> Iterable[str]:
    fs = file_system(checkpoint, options)
    if not fs.is_directory(checkpoint):
        return []
    return [found.path for found in fs.walk(checkpoint) if found.kind == "file" and found.path.endswith(".json")]


def _differing(one: pa.Schema, other: pa.Schema) -> str:
    for name in dict.fromkeys([*one.names, *other.names]):
        types = [str(schema.field(name).type) if name in schema.names else "no such column" for schema in (one, other)]
        if types[0] != types[1]:
            return f"{name}: {types[1]}, and others {types[0]}"
    return "the columns in another order, or other metadata"


def _version_with(records: _Records, dataset: str, options: StorageOptions | None) -> int | None:
    """The first version that has all the files, if a call before this one got as far as the commit."""
    files, found = records.files(), None
    try:
        latest = open_dataset(dataset, None, options, "commit_lance_checkpoint")
    except NoInputError:
        return None
    for version in sorted((int(one["version"]) for one in latest.versions()), reverse=True):
        opened = latest.checkout_version(version)
        if not files <= {file.path for fragment in opened.get_fragments() for file in fragment.data_files()}:
            break
        found = version
    return found


def _commit(records: _Records, dataset: str, options: StorageOptions | None) -> int:
    lance = require("lance", extra=EXTRA)
    fragments = [lance.FragmentMetadata.from_json(json.dumps(each)) for each in records.fragments]
    if records.mode == "append":
        operation = lance.LanceOperation.Append(fragments)
        read_version = open_dataset(dataset, None, options, "commit_lance_checkpoint").version
    else:
        operation, read_version = lance.LanceOperation.Overwrite(records.schema, fragments), None
    given = dict(options) if options else None
    return int(lance.LanceDataset.commit(dataset, operation, read_version=read_version, storage_options=given).version)
