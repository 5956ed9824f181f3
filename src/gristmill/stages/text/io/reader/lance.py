"""`LanceReader`: datasets in Lance's format, some fragments at a time, of one version."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError, NoInputError, ReadError, check_installed, nearest, require
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.io.files import check_kwargs, storage_options
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES
from gristmill.stages.io.table_reading import TableReadingStage, damaged, in_blocks
from gristmill.storage.file_system import StorageOptions, absolute
from gristmill.tasks import DocumentBatch, EmptyTask, FileGroupTask, FileSlice, Task

if TYPE_CHECKING:
    from types import ModuleType

EXTRA = "lance"
# Names users know for what Lance says of a row. Writers leave out columns that begin like this.
OWN = "__lance_"
ROW_ID, ROW_ADDRESS, FRAGMENT = f"{OWN}rowid", f"{OWN}rowaddr", f"{OWN}fragid"
KNOWN_KWARGS = frozenset({"storage_options", "version", "filter", "batch_size"})


@dataclass(eq=False)
class LanceReader(CompositeStage[EmptyTask, DocumentBatch]):
    """Read a Lance dataset, `fragments_per_partition` fragments in each partition.

    The version is fixed when the pipeline is planned: a run reads one version, and goes on with it after a crash.
    `fields` are the only columns read. `include_lance_metadata` adds `__lance_rowid`, `__lance_rowaddr` and
    `__lance_fragid`, which `LanceWriter` leaves out again. `fragment_ids` are the only fragments read. `read_kwargs`
    takes `storage_options`, `version`, `filter` (an expression of Lance) and `batch_size`.
    """

    path: str
    fragments_per_partition: int = 32
    fields: list[str] | None = None
    read_kwargs: Mapping[str, object] | None = None
    include_lance_metadata: bool = True
    fragment_ids: list[int] | None = None
    task_type: str = "document"
    name: str = "lance_reader"

    def __post_init__(self) -> None:
        check_kwargs(self.name, "read_kwargs", self.read_kwargs, KNOWN_KWARGS)
        if self.task_type != "document":
            raise ConfigError(f"{self.name}: expected task_type 'document'; got {self.task_type!r}")
        if self.fragments_per_partition < 1:
            raise ConfigError(
                f"{self.name}: expected fragments_per_partition ≥ 1; got {self.fragments_per_partition!r}"
            )

    def make_paths_absolute(self) -> None:
        self.path = absolute(self.path)

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        listing = LancePartitioningStage(
            self.path,
            self.fragments_per_partition,
            self.fragment_ids,
            self.read_kwargs,
            name=f"{self.name}_partitioning",
        )
        reading = LanceReaderStage(
            self.fields, self.read_kwargs, include_lance_metadata=self.include_lance_metadata, name=self.name
        )
        reading.listing = listing
        return [listing, reading]  # type: ignore[list-item]  # stages are invariant in their tasks


@dataclass(eq=False)
class LancePartitioningStage(ProcessingStage[EmptyTask, FileGroupTask]):
    """List the fragments of one version of a dataset, some for each partition."""

    path: str
    fragments_per_partition: int = 32
    fragment_ids: list[int] | None = None
    read_kwargs: Mapping[str, object] | None = None
    name: str = "lance_partitioning"

    _version: int | None = field(default=None, init=False, repr=False)

    def make_paths_absolute(self) -> None:
        self.path = absolute(self.path)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def check_ready(self) -> None:
        check_installed("lance", extra=EXTRA)

    def process(self, task: EmptyTask) -> list[FileGroupTask]:
        return list(self.partitions())

    def use_listing(self, files: Sequence[tuple[str, int, str]]) -> None:
        """Take the version a run began with, whatever was committed since."""
        self._version = next((int(version) for _, _, version in files if version), None)

    def partitions(self) -> list[FileGroupTask]:
        """A task for each group of fragments: their numbers are what the reader is given."""
        dataset = self.open()
        there = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
        wanted = sorted(there if self.fragment_ids is None else set(self.fragment_ids))
        missing = [number for number in wanted if number not in there]
        if missing:
            raise ConfigError(
                f"{self.name}: expected fragments that version {dataset.version} of {self.path!r} has, "
                f"{_few(sorted(there))}; got {_few(missing)}"
            )
        if not wanted:
            raise NoInputError(f"{self.name}: expected fragments in {self.path!r}; version {dataset.version} has none")
        groups = [
            wanted[start : start + self.fragments_per_partition]
            for start in range(0, len(wanted), self.fragments_per_partition)
        ]
        return [self._task([there[number] for number in group], dataset.version) for group in groups]

    def _task(self, fragments: Sequence[Any], version: int) -> FileGroupTask:
        # A slice for each: damage costs one fragment, not its neighbours in the partition.
        slices = tuple(
            FileSlice(self.path, (one.fragment_id,), version=str(version), num_bytes=_num_bytes(one))
            for one in fragments
        )
        name = f"fragments-{fragments[0].fragment_id:08d}"
        return FileGroupTask(self.path.rpartition("/")[2], [self.path], slices=slices, partition_name=name)

    def open(self) -> Any:
        """The dataset at the version that is read."""
        given = (self.read_kwargs or {}).get("version")
        return open_dataset(
            self.path, self._version if given is None else given, storage_options(self.read_kwargs), self.name
        )


@dataclass(eq=False)
class LanceReaderStage(TableReadingStage[DocumentBatch]):
    """Read fragments."""

    include_lance_metadata: bool = field(default=True, kw_only=True)
    block_bytes: int = field(default=DEFAULT_BLOCK_BYTES, kw_only=True)
    name: str = field(default="lance_reader", kw_only=True)

    listing: LancePartitioningStage | None = field(default=None, init=False, repr=False)
    format_name: ClassVar[str] = "a Lance dataset"

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [*(self.fields or []), *self._added()]

    def _added(self) -> list[str]:
        return [ROW_ID, ROW_ADDRESS, FRAGMENT] if self.include_lance_metadata else []

    def _kept(self) -> list[str] | None:
        return None if self.fields is None else [*self.fields, *self._added()]

    def columns(self) -> list[str] | None:
        """As the schema says; a field that it does not have is refused."""
        if self.listing is None:
            return None
        known = list(self.listing.open().schema.names)
        for name in self.fields or ():
            if name not in known:
                raise ConfigError(
                    f"{self.stage_name()}: expected fields of {known[:12]}; got {name!r}{nearest(name, known)}"
                )
        return [*(known if self.fields is None else self.fields), *self._added()]

    def get_config(self) -> dict[str, object]:
        return {key: value for key, value in super().get_config().items() if key != "listing"}

    def tables_of(self, part: FileSlice, options: StorageOptions | None) -> Iterator[pa.Table]:
        dataset = open_dataset(part.path, int(part.version), options or storage_options(self.read_kwargs), self.name)
        kwargs = {
            key: (self.read_kwargs or {})[key] for key in ("filter", "batch_size") if key in (self.read_kwargs or {})
        }
        added = self.include_lance_metadata
        for number in part.part or ():
            try:
                batches = dataset.get_fragment(number).to_batches(
                    columns=self.fields, with_row_id=added, with_row_address=added, **kwargs
                )
                for table in in_blocks(batches, self.block_bytes):
                    yield self._with_metadata(table, number) if added else table
            except (pa.ArrowException, OSError) as error:
                raise damaged(part, f"the rows of fragment {number}", error) from error

    def _with_metadata(self, table: pa.Table, fragment: int) -> pa.Table:
        names = [{"_rowid": ROW_ID, "_rowaddr": ROW_ADDRESS}.get(name, name) for name in table.column_names]
        return table.rename_columns(names).append_column(FRAGMENT, pa.array([fragment] * len(table), pa.int64()))


def open_dataset(path: str, version: object, options: StorageOptions | None, who: str) -> Any:
    """Open a version of a dataset, or the latest; raise a readable error if it is not there."""
    library: ModuleType = require("lance", extra=EXTRA)
    try:
        return library.dataset(path, version=version, storage_options=dict(options) if options else None)
    except (ValueError, OSError) as error:
        if "not found" in str(error).lower() or "was not found" in str(error):
            wanted = "" if version is None else f", version {version}"
            raise NoInputError(f"{who}: expected a Lance dataset in {path!r}{wanted}; {_first_line(error)}") from None
        raise ReadError(f"{who}: {path}: expected a Lance dataset that can be read; {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:300]


def _num_bytes(fragment: Any) -> int:
    return sum(file.file_size_bytes or 0 for file in fragment.data_files())


def _few(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return f"{shown} and {len(numbers) - 10} more" if len(numbers) > 10 else shown or "none"
