"""`WebDatasetWriter`: documents as samples of tar archives. The same batch gives the same bytes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import xxhash

from gristmill.errors import ConfigError, StageError
from gristmill.stages.io.files import FileWriter, storage_options, write_output
from gristmill.stages.text.io.reader.webdataset import KEY
from gristmill.storage.atomic_write import Chunk
from gristmill.storage.tar import BLOCK
from gristmill.tasks import DocumentBatch, FileGroupTask
from gristmill.tasks.json_encoding import encode_lines

LONGEST_KEY = 80  # bytes: a header has room for 100 with the field behind it
_UNSAFE = re.compile(r"[.%\\\x00-\x1f\x7f]|^/+|/{2,}|/$|(?:^|(?<=/))_(?=(?:_|__|_[^/]*__)$)")
_FIELD = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_OWN = ("txt", "json", "cls")  # columns that are fields under their own names
_TEXT, _REST, _MORE = "txt", "json", "columns.json"


@dataclass(eq=False)
class WebDatasetWriter(FileWriter[DocumentBatch]):
    """Write each batch as samples of `<path>/<task id>-000000.tar` and so on, `samples_per_shard` in each.

    The text is a sample's `.txt`; columns of bytes are files under their names; all other columns together are its
    `.json`, where those named `json`, `cls` or `txt` are files of their own. A missing value has no file. Samples are
    named by the column `key_field` or, without one, by the batch and the row. Dots in a name become `%2E`: what is
    behind one would be a field. `write_kwargs` takes `storage_options`.
    """

    file_extension: str = "tar"
    name: str = "webdataset_writer"
    samples_per_shard: int = field(default=10_000, kw_only=True)
    text_field: str = field(default="text", kw_only=True)
    key_field: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples_per_shard < 1:
            raise ConfigError(f"{self.name}: expected samples_per_shard ≥ 1; got {self.samples_per_shard}")
        if self.file_extension not in ("tar", "tar.gz", "tar.zst", "tar.bz2"):
            raise ConfigError(
                f"{self.name}: expected file_extension to be tar, or tar.gz, tar.zst, tar.bz2; "
                f"got {self.file_extension!r}"
            )

    def inputs(self) -> tuple[list[str], list[str]]:
        needed = list(self.fields or []) + ([self.key_field] if self.key_field else [])
        return ["data"], list(dict.fromkeys(needed))

    def process(self, task: DocumentBatch) -> FileGroupTask:
        """Write a batch as one archive or several; return them."""
        keys = self._keys(task)
        batch = task if self.fields is None else task.select(self.fields)
        stem = task.task_id or xxhash.xxh3_128(b"".join(map(bytes, encode_lines(batch)))).hexdigest()
        options = storage_options(self.write_kwargs)
        made: list[FileGroupTask] = []
        for number, start in enumerate(range(0, batch.num_items, self.samples_per_shard)):
            shard = batch.slice(start, self.samples_per_shard)
            given = enumerate(keys[start : start + self.samples_per_shard], start)
            names = [key or f"{escaped(stem)}-{row:08d}" for row, key in given]
            chunks = self._compressed(self._archive(shard, names))
            final = f"{self.path.rstrip('/')}/{stem}-{number:06d}.{self.file_extension}"
            counted = shard.num_items
            made.append(write_output(self.context, final, chunks, task, num_items=counted, storage_options=options))
        paths = [path for one in made for path in one.data]
        return FileGroupTask(task.dataset_name, paths, staged=tuple(file for one in made for file in one.staged))

    def _keys(self, batch: DocumentBatch) -> list[str]:
        """The name of each sample as a user gave it, safe to be one; empty where there is none. No two are equal."""
        column = self.key_field or (KEY if KEY in batch.get_columns() else None)
        if column is None:
            return [""] * batch.num_items
        keys = ["" if value is None else escaped(str(value)) for value in batch.column(column).to_pylist()]
        seen: dict[str, int] = {}
        for row, key in enumerate(keys):
            count = seen[key] = seen.get(key, -1) + 1
            if key and count:  # two samples of one name would be taken for one
                keys[row] = f"{key}%-{count}"
        return keys

    def _archive(self, batch: DocumentBatch, keys: Sequence[str]) -> Iterator[Chunk]:
        own, rest = self._files_and_rest(batch)
        columns = {name: batch.column(column) for name, column in own.items()}
        lines = _lines(batch.select(rest), batch.num_items) if rest else None
        rest_name = _MORE if _REST in own else _REST
        for row, key in enumerate(keys):
            files = {name: _content(column[row].as_py()) for name, column in columns.items()}
            if lines is not None:
                files[rest_name] = lines[row]
            files = {name: content for name, content in files.items() if content is not None} or {_REST: b"{}"}
            for name, content in sorted(files.items()):
                yield from _member(f"{key}.{name}", content or b"")
        yield bytes(2 * BLOCK)

    def _files_and_rest(self, batch: DocumentBatch) -> tuple[dict[str, str], list[str]]:
        """Which columns are files, by field, and which go into the JSON object."""
        own: dict[str, str] = {}
        rest: list[str] = []
        for column in batch.get_columns():
            name = _TEXT if column == self.text_field else column.lower()
            is_file = column == self.text_field or name in _OWN or _is_binary(batch, column)
            if is_file and (name in own or not _FIELD.fullmatch(name)):
                other = f"; {own[name]!r} is one already" if name in own else ""
                raise StageError(f"{self.name}: expected columns that can be files of a sample; got {column!r}{other}")
            if is_file:
                own[name] = column
            elif column != KEY:
                rest.append(column)
        return own, rest


def escaped(key: str) -> str:
    """A name for a sample that stays inside the archive and has no dot; a long one ends in a hash.

    If it begins and ends with two underscores, the first is escaped: readers take those for notes, not samples.

    >>> escaped("../a.b"), escaped("a/__b__")
    ('%2E%2E/a%2Eb', 'a/%5F_b__')
    """
    safe = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), key)
    if len(safe.encode()) <= LONGEST_KEY:
        return safe
    kept = safe.encode()[: LONGEST_KEY - 17].decode("utf-8", "ignore")
    return f"{kept}-{xxhash.xxh3_64_hexdigest(key.encode('utf-8', 'surrogatepass'))}"


def _is_binary(batch: DocumentBatch, column: str) -> bool:
    kind = batch.column(column).type
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _content(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogatepass")


def _lines(batch: DocumentBatch, count: int) -> list[bytes]:
    """A JSON object for each row; values that were read from JSON keep their bytes."""
    lines = b"".join(map(bytes, encode_lines(batch))).split(b"\n")
    return lines[:count]


def _member(name: str, content: bytes) -> Iterator[Chunk]:
    """A file of an archive, without time, owner or anything else that differs between machines."""
    import tarfile  # takes 10 ms, and most runs write something else

    info = tarfile.TarInfo(name)
    info.size = len(content)
    yield info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape")
    yield content
    yield bytes(-len(content) % BLOCK)
