"""Files get their final names: by a rename on a disk, by a copy and a delete inside a store.

The ledger has named them before, so a crash in between is made good by doing it again, which changes nothing. A store
takes a tenth of a second for each, however small it is, so there many are published at a time.

Planning imports this file, for where outputs may be, and everything that imports `Pipeline` imports planning, workers
included: so it loads nothing that only publishing needs.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from gristmill.engine.plan import AnyStage, Plan
from gristmill.errors import ConfigError, MachineError, RunFailed
from gristmill.runs.ledger import CommitRecord, read_ledger
from gristmill.stages.io.partitions import Partitions
from gristmill.storage.atomic_write import checksum_of, checksum_of_stream, publish, remove
from gristmill.storage.file_system import StorageOptions, absolute, file_system, is_hidden, is_url
from gristmill.tasks import StagedFile

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    # Code for stores is loaded only where there is one, or every start of a program would pay for it
    from gristmill.stages.exchange.barrier import Findings
    from gristmill.storage.remote_file_system import RemoteFileSystem
    from gristmill.tasks import TableBatch

# Which options reach which store: of all places a run writes, only a writer's directory comes with `storage_options`.

OptionsOf = Callable[[str], StorageOptions]
_NONE: Mapping[str, object] = {}


def can_hold_runs(url: str) -> bool:
    """Whether a run directory may be on a store of that kind. Whether the server plays along, the run finds out."""
    from gristmill.storage.remote_file_system import CREATES

    return url.partition("://")[0].lower() in CREATES


def environment_only(path: str) -> StorageOptions:
    """Options of a run without writers on stores."""
    del path
    return _NONE


def store_options(plan: Plan) -> OptionsOf:
    """Return a function that gives the options for a path of a run.

    Below a writer's directory they are the writer's. Rejects and a run directory elsewhere are reached like the first
    writer's directory of the same scheme, else as the environment says.
    """
    stages = [stage for group in plan.groups for stage in group.stages]
    known = [(path, stage.output_options()) for stage in stages if (path := stage.output_directory()) and is_url(path)]

    def of(path: str) -> StorageOptions:
        if not is_url(path):
            return _NONE
        below = [options for directory, options in known if f"{path}/".startswith(f"{directory.rstrip('/')}/")]
        scheme = path.partition("://")[0]
        alike = [options for directory, options in known if directory.partition("://")[0] == scheme]
        return next(iter([*below, *alike]), _NONE)

    return of


AT_ONCE = 16
LOOKERS = 8  # files verified at a time
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # a store that is busy, or away for half a minute
T = TypeVar("T")


def patiently(action: Callable[[], T]) -> T:
    """Do something on a store, again after a pause if that may help. Each time the client itself tries a few times."""
    for pause_s in PAUSES_S:
        try:
            return action()
        except MachineError as error:
            from gristmill.storage.store_errors import may_pass

            if not may_pass(error):
                raise
            time.sleep(pause_s)
    return action()


def publish_all(files: Iterable[StagedFile], options_of: OptionsOf) -> None:
    """Let files appear under their names."""
    remote = []
    for file in files:
        if is_url(file.final):
            remote.append(file)
        else:
            publish(file.temporary, file.final)
    for fs, some in _by_store(remote, options_of):
        _at_once(fs, some)


def publish_late(files: Sequence[StagedFile], options_of: OptionsOf) -> dict[str, int]:
    """Do the renames a crash prevented, on stores. Return the sizes of the files that are there, by name.

    Directories are listed rather than asking for each file: a resumed run may have a hundred thousand.
    """
    sizes: dict[str, int] = {}
    for fs, some in _by_store(files, options_of):
        roots = {name.rpartition("/")[0] for file in some for name in (file.temporary, file.final)}
        there = {path: status for root in roots for path, status in fs.walk_all(root).items()}
        late = [file for file in some if fs.full(file.temporary) in there]
        _at_once(fs, late)
        moved = {fs.full(file.final): there[fs.full(file.temporary)].size for file in late}
        found = {path: status.size for path, status in there.items()} | moved
        sizes.update({file.final: found[full] for file in some if (full := fs.full(file.final)) in found})
    return sizes


def _publish_remote(fs: "RemoteFileSystem", file: StagedFile) -> None:
    try:
        fs.rename(file.temporary, file.final)
    except FileNotFoundError:  # published already: by this run, whose answer was lost, or by an earlier one
        if fs.status(file.final, fresh=True) is None:
            raise


def _by_store(files: Iterable[StagedFile], options_of: OptionsOf) -> list[tuple["RemoteFileSystem", list[StagedFile]]]:
    """Files with the store they are on. Threads share its client: making one takes a tenth of a second."""
    groups: dict[str, list[StagedFile]] = {}
    for file in files:
        groups.setdefault(file.final.rpartition("/")[0], []).append(file)
    if not groups:
        return []
    from gristmill.storage.remote_file_system import RemoteFileSystem

    return [(RemoteFileSystem(directory, options_of(directory)), some) for directory, some in groups.items()]


def _at_once(fs: "RemoteFileSystem", files: Sequence[StagedFile]) -> None:
    def act(file: StagedFile) -> None:
        patiently(lambda: _publish_remote(fs, file))

    if len(files) == 1:
        act(files[0])
    elif files:
        with _threads(AT_ONCE) as threads:
            for _ in threads.map(act, files):
                pass  # the first error is raised here


# What an earlier run has committed, looked at again.


FilesOf = Callable[[CommitRecord], tuple[StagedFile, ...]]


def all_files(record: CommitRecord) -> tuple[StagedFile, ...]:
    """Return outputs, rejects and quarantine."""
    return (*record.files, *record.side_files)


def publish_committed(
    records: Iterable[CommitRecord], options_of: OptionsOf, files_of: FilesOf = all_files
) -> Iterator[CommitRecord]:
    """Do the renames a crash prevented; return the records whose files are all there, with the right sizes."""
    remote = []
    for record in records:
        if any(is_url(file.final) for file in files_of(record)):
            remote.append(record)  # a store is asked for all at once
        elif _are_there(files_of(record), {}):
            yield record
    on_stores = [file for record in remote for file in files_of(record) if is_url(file.final)]
    sizes = publish_late(on_stores, options_of)
    yield from (record for record in remote if _are_there(files_of(record), sizes))


def _are_there(files: Sequence[StagedFile], sizes: Mapping[str, int]) -> bool:
    """Rename what is still to be renamed on disks; return whether all is there. `sizes` are of files on stores."""
    found = [sizes.get(file.final) if is_url(file.final) else _publish_late(file) for file in files]
    return found == [file.num_bytes for file in files]


def _publish_late(file: StagedFile) -> int | None:
    """Rename the file if that is still to be done; return its size, or None if it is nowhere."""
    fs = file_system(file.final)
    if fs.status(file.temporary) is not None and _has_checksum(file.temporary, file.checksum):
        publish(file.temporary, file.final)
    found = fs.status(file.final)
    return None if found is None else found.size


def verify(files: Iterable[StagedFile]) -> list[bool]:
    """Read files; return for each whether it has the content it was written with. One that has not is removed.

    Removed, so that no later run takes it for whole.
    """
    files = list(files)
    if len(files) <= LOOKERS:  # starting threads takes longer
        return [_is_as_written(file) for file in files]
    with _threads(LOOKERS) as looking:
        return list(looking.map(_is_as_written, files))


def _is_as_written(file: StagedFile) -> bool:
    # A store does not lose what it has accepted when this machine stops.
    return is_url(file.final) or _has_checksum(file.final, file.checksum)


def _has_checksum(path: str, checksum: str) -> bool:
    try:
        if checksum_of(path) == checksum:
            return True
    except OSError:  # the disk has suffered with the machine
        pass
    with contextlib.suppress(OSError):
        remove(path)
    return False


# What must not be replaced: files of others, and what this run has committed for another source partition.


class Owners:
    """Which source partition has committed which file, for a run that finds one in its way.

    That is rare, so the ledger is read when it first happens. Hashes instead of names: there may be millions.
    """

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._roots: dict[int, int] | None = None  # by the hash of a final name

    def add(self, records: Iterable[CommitRecord]) -> None:
        """Take note of what was committed."""
        if self._roots is not None:
            self._roots.update((hash(file.final), record.root) for record in records for file in all_files(record))

    def other(self, final: str, root: int) -> str | None:
        """The name of the partition that has committed this file, if it is another one than `root`."""
        if self._roots is None:
            self._roots = {}
            self.add(read_ledger(self._ledger).records.values())
        owner = self._roots.get(hash(final), root)
        if owner == root:
            return None
        record = read_ledger(self._ledger).records.get(owner)  # a real match ends the run; equal hashes may be chance
        has_it = record is not None and any(file.final == final for file in all_files(record))
        return record.name if record is not None and has_it else None


def check_apart(records: Iterable[CommitRecord], taken: dict[str, str]) -> None:
    """Raise RunFailed if two of these would publish the same file. `taken` has partitions by file; theirs are added."""
    for record in records:
        for file in all_files(record):
            if file.final in taken:
                raise _written_twice(file.final, taken[file.final], record.name)
            taken[file.final] = record.name


def check_not_in_the_way(
    records: Sequence[CommitRecord],
    owners: Owners,
    options_of: OptionsOf,
    *,
    may_replace: Callable[[str], bool],
    is_own: Callable[[str], bool],
) -> None:
    """Raise RunFailed if publishing these would replace a file of others, or of another partition of this run.

    One with the same content is accepted: it is this run's own, if its ledger line was lost. For the same reason a file
    may be in the run's own directories.
    """
    check_apart(records, {})
    files = [(record, file) for record in records for file in all_files(record) if not may_replace(file.final)]
    in_place = _in_place([file for _, file in files], options_of)
    for (record, file), is_same in zip(files, in_place, strict=True):
        if is_same is None:
            continue
        other = owners.other(file.final, record.root)
        if other is not None:
            raise _written_twice(file.final, other, record.name)
        if not is_same and not is_own(file.final):
            raise RunFailed(
                f"{file.final}: expected no such file, or one of this run; this one was already there and is not "
                "replaced. Move it away, write to another directory, or have the writer remove what is there "
                "(mode='overwrite')"
            )


def _written_twice(path: str, first: str, second: str) -> RunFailed:
    who = f"{first!r} and {second!r} both" if first != second else f"two parts of {first!r}"
    return RunFailed(
        f"{path}: expected one source partition to write this file; {who} do, and one would overwrite the other. "
        "Give one of the input files, or tasks, another name"
    )


def _in_place(files: Sequence[StagedFile], options_of: OptionsOf) -> list[bool | None]:
    """Return for each file whether what is in its place has the same content; None if nothing is."""
    if any(is_url(file.final) for file in files):  # a request each
        with _threads(LOOKERS) as looking:
            return list(looking.map(lambda file: _is_same(file, options_of), files))
    return [_is_same(file, options_of) for file in files]


def _is_same(file: StagedFile, options_of: OptionsOf) -> bool | None:
    fs = file_system(file.final, options_of(file.final))
    found = patiently(lambda: fs.status(file.final))
    if found is None or found.size != file.num_bytes:
        return None if found is None else False
    with fs.open_read(file.final) as content:
        return checksum_of_stream(content) == file.checksum


def _threads(number: int) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # 5 ms with what it loads, and few runs need threads here

    return ThreadPoolExecutor(number)


# Where the rows of exchanges are, and a check that no output gets in the way of an input.
#
# A plan is made and checked before it has a run directory. Whatever lies in that directory is named `RUN_DIR/...` until
# the run knows where it is.

NO_RUN = "RUN_DIR"  # stands for the run directory in plans that have none yet


def exchange_directory(run_dir: Path | str, number: int) -> str:
    """Return where the rows of a pipeline's exchange are, the first of which has the number 1."""
    return f"{run_dir}/exchange-{number}"


def in_directory(segments: Sequence[Plan], run_dir: Path) -> tuple[Plan, ...]:
    """Return the segments with the directory of the run they are for: rows are written in it by one, read by the next.

    Nothing is listed or checked again, except that this place is apart from the input.
    """
    plans = []
    for number, segment in enumerate(segments):
        outputs = tuple(_put_into(path, run_dir) for path in segment.output_directories)
        check_outputs(outputs, segments[0].inputs, segments[0].input_directories)
        groups = tuple(
            structs.replace(group, stages=tuple(_placed(stage, run_dir, number + 1) for stage in group.stages))
            for group in segment.groups
        )
        sources = segment.sources
        if number and not isinstance(sources, Partitions):
            data = [exchange_directory(run_dir, number)]
            sources = tuple(replace(task, data=data) for task in sources)
        plans.append(structs.replace(segment, groups=groups, sources=sources, output_directories=outputs, then=None))
    return tuple(plans)


def behind_barrier(plan: Plan, records: Mapping[int, CommitRecord], directory: str, findings: "Findings") -> Plan:
    """Return a segment told what the finished one before it has left in this directory of an exchange."""
    from gristmill.stages.exchange.barrier import LooksBack, SamePartitions, in_order, read_batches

    def files_of(root: int) -> list[str]:
        # By name: the run directory may have been moved since.
        finals = [file.final for file in records[root].files]
        own = [path.rpartition("/")[2] for path in finals if path.split("/")[-2] == directory.rpartition("/")[2]]
        return in_order(f"{directory}/{name}" for name in own)

    def rows() -> "Iterator[TableBatch]":
        return chain.from_iterable(read_batches(files_of(root)) for root in records)

    def informed(stage: AnyStage) -> AnyStage:
        return stage.look_back(rows, findings) if isinstance(stage, LooksBack) else stage

    groups = tuple(structs.replace(group, stages=tuple(map(informed, group.stages))) for group in plan.groups)
    sources = plan.sources
    return structs.replace(
        plan, groups=groups, sources=sources.with_files(files_of) if isinstance(sources, SamePartitions) else sources
    )


def _put_into(path: str, run_dir: Path) -> str:
    """Replace the stand-in for the run directory, only as a prefix: a user's output may have it in its path."""
    return f"{run_dir}/{path.removeprefix(f'{NO_RUN}/')}" if path.startswith(f"{NO_RUN}/") else path


def _placed(stage: AnyStage, run_dir: Path, number: int) -> AnyStage:
    from gristmill.stages.exchange.write_partitions import WritePartitions

    if not isinstance(stage, WritePartitions) or not stage.output_directory().startswith(f"{NO_RUN}/"):
        return stage
    placed = stage.with_()
    placed.__dict__["_directory"] = exchange_directory(run_dir, number)
    return placed


def check_outputs(outputs: Sequence[str], inputs: Sequence[tuple[str, int, str]], directories: Sequence[str]) -> None:
    """Raise ConfigError if output and input would get into each other's way.

    An output that has no place yet, because it goes where the run directory will be, is checked when it has one.
    """
    placed = [output for output in outputs if not output.startswith(f"{NO_RUN}/")]
    _check_input_is_safe(inputs, placed)
    _check_output_is_apart(directories, placed)


def _check_input_is_safe(inputs: Sequence[tuple[str, int, str]], outputs: Sequence[str]) -> None:
    """No input may lie where output goes: it would be overwritten, or read again by the next run."""
    for directory in outputs:
        root = absolute(directory).rstrip("/") + "/"
        for path, _, _ in inputs:  # listed files are absolute already, or URLs
            if path.startswith(root) or absolute(path).startswith(root):
                raise ConfigError(f"output directory {directory!r}: expected one without inputs in it; got {path!r}")


def _check_output_is_apart(listed: Sequence[str], outputs: Sequence[str]) -> None:
    """No output may lie in a directory that is read as a whole: the same command again would find other inputs."""
    for directory in outputs:
        for root in listed:
            below = absolute(directory).removeprefix(absolute(root).rstrip("/") + "/")
            if below != absolute(directory) and not any(is_hidden(part) for part in below.split("/")):
                raise ConfigError(
                    f"output directory {directory!r}: expected one outside of the input {root!r}, "
                    "whose files are all read: the next run would read this one's output"
                )
