"""`WebDatasetReader`: samples of tar archives as documents, split between samples.

The files of a sample are neighbours and share their path up to the first dot of the base name. What follows the dot is
the field: `a/001.txt` is the field `txt` of the sample `a/001`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import DamagedFile
from gristmill.stages.context import Quarantined
from gristmill.stages.io.files import TOO_LARGE, ReadingStage, lost_part, part_options, planned
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES
from gristmill.stages.io.splitting import Splitter
from gristmill.stages.io.table_reading import project
from gristmill.stages.io.tar_members import File, TarMembers, is_shown, read_samples, sample_of
from gristmill.stages.text.io.reader.document_reader import _DocumentReader
from gristmill.storage import tar
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile
from gristmill.storage.paths import is_compressed
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice
from gristmill.tasks.json_lines import loads

KEY = "__key__"
REPEATED_KEY, REPEATED_FIELD, BAD_FIELD = "repeated_key", "repeated_field", "bad_field"
KINDS = {
    REPEATED_KEY: "A sample has the same name as an earlier one in its archive.",
    REPEATED_FIELD: "A sample has the same field twice.",
    BAD_FIELD: "A field of a sample does not hold what its name says: it is not UTF-8, not JSON or not a whole number.",
}
NOT_A_FILE = "not_a_file"
REASONS = {NOT_A_FILE: "The member of an archive of samples is a link, a device or a pipe."}
MAX_BLOCKS = 2  # in one batch
MAX_LINKS = 1000  # that are counted together: an archive may have millions
LOOKED_AT = 400  # members of a file, to know its fields before a run
_MAX_SHOWN = 1000  # characters of a value that is put on record

Row = dict[str, object]


@dataclass(eq=False)
class WebDatasetReader(_DocumentReader):
    """Read samples of tar archives (plain, .gz, .zst, .bz2) as documents.

    A sample's name is in the column `__key__`. Its files are columns: `.txt` and `.json` as text, `.cls` as a whole
    number, all others as bytes; `seg.png` is a field of its own. Hidden files and names such as `__meta__` are passed
    over; links, devices and pipes are dropped and counted. A sample that has a field twice, the name of
    an earlier one, or not what its name says goes to quarantine. `fields` are the only columns read.
    `read_kwargs` takes `storage_options`.
    """

    split: ClassVar[Splitter] = TarMembers()

    file_extensions: list[str] = field(default_factory=lambda: [".tar"])
    name: str = "webdataset_reader"

    def reading_stage(self) -> ReadingStage[DocumentBatch]:
        return WebDatasetReaderStage(self.fields, self.read_kwargs, block_bytes=self.block_bytes, name=self.name)


@dataclass(eq=False)
class WebDatasetReaderStage(ReadingStage[DocumentBatch]):
    """Read archives, or parts of them."""

    block_bytes: int = field(default=DEFAULT_BLOCK_BYTES, kw_only=True)
    name: str = field(default="webdataset_reader", kw_only=True)

    format_name: ClassVar[str] = "a tar archive"

    def columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        """The fields of the first samples; a compressed archive would have to be unpacked for them."""
        if is_compressed(path):
            return []
        found = {KEY: None}
        with InputFile(path, storage_options=options) as file:
            headers = tar.members(lambda start, end: memoryview(file.read_range(start, end)), 0, file.size, who=path)
            try:
                for member in islice(headers, LOOKED_AT):
                    name = _field_of(member.name) if is_shown(member) else ""
                    found |= {name: None} if name else {}
            except DamagedFile:
                pass  # the run puts it on record
        return list(found)

    def process(self, task: FileGroupTask) -> DocumentBatch | Iterator[DocumentBatch]:
        """Read one batch, or a stream of batches where there is more than that."""
        batches = self._batches(task)
        first = next(batches)
        second = next(batches, None)
        return first if second is None else chain([first, second], batches)

    def _batches(self, task: FileGroupTask) -> Iterator[DocumentBatch]:
        options = part_options(task.reader_config, self.read_kwargs)
        rows: list[Row] = []
        links: list[str] = []
        size = 0
        for part in task.parts():
            for row, num_bytes in self._rows(part, options, links):
                if size > MAX_BLOCKS * self.block_bytes:
                    self._drop(links)
                    yield self._batch(task, rows)
                    rows, size = [], 0
                rows.append(row)
                size += num_bytes
        self._drop(links)
        yield self._batch(task, rows)

    def _leave(self, links: list[str], link: tar.Member) -> None:
        links.append(link.name)
        if len(links) == MAX_LINKS:
            self._drop(links)

    def _drop(self, links: list[str]) -> None:
        """Count members that are not files, and begin a new list of them."""
        batch = DocumentBatch("links", pa.table({KEY: pa.array(map(sample_of, links), pa.string()), "name": links}))
        self.context.drop(batch, [True] * len(links), reason=NOT_A_FILE)
        links.clear()

    def _batch(self, task: FileGroupTask, rows: list[Row]) -> DocumentBatch:
        names = dict.fromkeys(chain([KEY], *rows))
        columns = {name: pa.array([row.get(name) for row in rows], _type_of(name)) for name in names}
        batch = DocumentBatch(task.dataset_name, project(pa.table(columns), self.fields))
        batch._metadata["source_files"] = list(task.data)
        return batch

    def _rows(self, part: FileSlice, options: StorageOptions | None, links: list[str]) -> Iterator[tuple[Row, int]]:
        seen: set[str] = set()
        with InputFile(part.path, planned=planned(part), storage_options=options) as file:
            try:
                leave = partial(self._leave, links)
                for sample in read_samples(file, part.part, self.most_bytes(), left_out=leave):
                    if not any(_field_of(member.name) for member, _ in sample):
                        continue  # names without a field, such as a README
                    try:
                        yield self._row(sample, seen), sum(member.size for member, _ in sample)
                    except _BadSampleError as error:
                        self.context.quarantine(replace(error.record, source=part.path))
            except DamagedFile as error:
                self.context.quarantine(lost_part(error, part.path))

    def _row(self, sample: list[File], seen: set[str]) -> Row:
        key = sample_of(sample[0][0].name)
        if key in seen:
            raise _BadSampleError(key, REPEATED_KEY, "a sample of this name came before it")
        seen.add(key)
        row: Row = {KEY: key}
        for member, content in sample:
            name = _field_of(member.name)
            if content is None:
                most = f"at most {self.most_bytes():,} bytes (max_document_bytes)"
                raise _BadSampleError(key, TOO_LARGE, f"expected {most} in {member.name}; got {member.size:,}")
            if name in row:
                raise _BadSampleError(key, REPEATED_FIELD, f"the field {name!r} occurs twice")
            if name:
                try:
                    row[name] = _value(name, content)
                except (ValueError, RecursionError) as error:  # what is not UTF-8, or not JSON, or too deep
                    raise _BadSampleError(key, BAD_FIELD, f"{member.name}: {error}", content) from None
        return row


class _BadSampleError(Exception):
    """A sample that does not become a document, and the record that says why."""

    def __init__(self, key: str, kind: str, error: str, content: bytes = b"") -> None:
        shown = content[:_MAX_SHOWN].decode("utf-8", "replace")
        self.record = Quarantined(f"sample {key!r}: {error}", kind, document=shown, document_id=key)


def _field_of(name: str) -> str:
    """The field a member is: what follows the first dot of its base name, in lower case; empty if there is none."""
    return name.rpartition("/")[2].partition(".")[2].lower()


def _kind_of(name: str) -> str:
    """How a field is read: by what is behind its last dot."""
    return name.rpartition(".")[2]


def _type_of(name: str) -> pa.DataType:
    kinds = {"txt": pa.string(), "json": pa.string(), "cls": pa.int64()}
    return pa.string() if name == KEY else kinds.get(_kind_of(name), pa.large_binary())


def _value(name: str, content: bytes) -> object:
    kind = _kind_of(name)
    if kind == "txt":
        return content.decode()
    if kind == "json":
        loads(content)
        return content.decode()  # as it is written, once it is known to be JSON
    return _number(content) if kind == "cls" else content


def _number(content: bytes) -> int:
    text = content.decode().strip()
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"expected a whole number; got {text[:100]!r}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"expected a number of 64 bits; got {text[:100]!r}")
    return number
