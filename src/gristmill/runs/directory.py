"""The run directory: what a run is, what it has committed, what it looks like now.

    header.json    the plan's fingerprint, the stages' configurations, the input files: what a resumed run must equal
    recipe.yaml    what the pipeline was built from, for `gristmill explain`; none for a pipeline of a program
    ledger.jsonl   one line a committed source partition (runs/ledger.py); append-only, one writer
    start          during which start of which machine files were written (runs/sinks.py), or that they are on disk
    lock           held by the driver for as long as it lives
    status.json    the latest snapshot, for `gristmill status`
    metrics.jsonl  the history of the run, in columns (metrics/history_writer.py)
    events.log     what the scheduler was told, and hashes of its answers (kept_records.py), for `gristmill replay`
    tasks.jsonl    in place of it where another engine schedules: when each task was done (task_times.py)
    quarantine/    documents that could not be processed
    measures/      how measures are distributed, and examples of documents
    report.json    the books, when the run has ended
    measured.json  how fast its stages were, for `gristmill simulate`

Publication order is the guarantee: a writer writes a temporary file, the ledger line is forced to disk, then the file
is renamed. A crash before the line leaves an orphan that the next run deletes; a crash after it leaves a rename that
the next run does. The files themselves are forced only where a run may go on without the machine that wrote them
(`durable`). When the machine itself stops, some of the others may not have reached the disk: a run that finds itself
after a restart looks at every committed file and does again what is not as it was written.
"""

import contextlib
import json
import os
import shutil
from array import array
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gristmill.engine.plan import Plan
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.metrics.observation_files import MEASURES_DIR
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.runs.books import RunResult, completed_file, completers_of
from gristmill.runs.ledger import (
    HOW_TO_GO_ON,
    CommitRecord,
    Header,
    HeaderMissing,
    LedgerFile,
    LedgerRecords,
    as_texts,
    differs_in_code_only,
    has_text,
    header_of,
    in_full,
    parse,
    published_files,
    read_ledger,
    refusal,
    with_long_list,
)
from gristmill.runs.publication import (
    FilesOf,
    OptionsOf,
    Owners,
    all_files,
    check_not_in_the_way,
    environment_only,
    publish_all,
    publish_committed,
    verify,
)
from gristmill.runs.sinks import HIDDEN, DiskSinks, Held, LockFile, StoreSinks, machine_start
from gristmill.runs.user import setting
from gristmill.stages.context import STAGING_DIR
from gristmill.storage.atomic_write import (
    explained,
    force_file,
    force_names,
    remove,
    remove_for_good,
    whole_file,
)
from gristmill.storage.file_system import is_url, plain
from gristmill.tasks import StagedFile

if TYPE_CHECKING:
    from gristmill.runs.progress import MeasuredRun

ON_DISK = "on disk"  # instead of a start: every file was forced
COMMIT_S = 0.05  # lines of this long are forced to disk together
VERIFIED_AT_A_TIME = 512  # partitions: a record is a kilobyte, and there may be millions
LEFT_BY_A_RUN = (
    "ledger.jsonl",
    "start",
    "header.json",
    "recipe.yaml",
    "status.json",
    "report.json",
    "metrics.jsonl",
    "events.log",
    "tasks.jsonl",
    "measured.json",
)


class RunDirectory:
    """One run directory, held by one driver."""

    commit_s = COMMIT_S

    def __init__(
        self,
        path: Path,
        *,
        session: str,
        durable: bool = False,
        root: Path | None = None,
        options_of: OptionsOf = environment_only,
        shown: str = "",
        shared: bool = False,
    ) -> None:
        self.path = path
        self.shown = shown or str(path)  # what users know it as; differs from `path` where that is a copy of a store's
        self.quarantine_path = f"{self.shown}/quarantine"  # where workers put documents that could not be processed
        self.measures_path = f"{self.shown}/{MEASURES_DIR}"  # and what they record about documents
        self.root = root or path  # of the whole run, if this is a segment of it
        self.session = session
        self.messages: list[str] = []  # what was found when the run was continued
        self.durable = durable
        self._beginning: list[Future[None]] = []  # what is on its way to disk before the first line of the ledger
        self._has_begun = False  # whether all of that is there
        self.quarantine = path / "quarantine"
        self.options_of = options_of
        self.disks = DiskSinks(session, self.root, shared=shared)
        self.sinks = StoreSinks(session, options_of)
        self._lock: LockFile | None = None
        self._replaceable: set[str] = set()  # files of this run that are not as they were written
        self._owners = Owners(path / "ledger.jsonl")
        self._superseded: dict[int, set[str]] = {}  # by partition: what it gave before, if it is done again
        self._ledger: LedgerFile | None = None

    # Opening

    def acquire(self) -> None:
        """Make the directory and take its lock, or say who holds it."""
        try:
            self.disks.make(self.path)
            if self.disks.directory_mode == 0o700 and self.path.name == HIDDEN:  # made by others, or long ago
                self.path.chmod(self.disks.directory_mode)
            self._lock = LockFile(self.path / "lock", self.disks.file_mode)
        except Held as held:
            raise ConfigError(f"{self.path}: expected no other run here; {held} is running in it") from None
        except OSError as error:
            raise ConfigError(f"{self.path}: expected a directory that can be written to; {error}") from error
        for left in self.path.glob(".*.tmp"):  # by a run that was killed while it wrote a file
            left.unlink(missing_ok=True)

    def hold_outputs(self, directories: Iterable[str]) -> None:
        """Keep every other run out of these directories while this one lives, whatever run directory it has.

        Two runs would remove each other's temporary files, and replace each other's outputs. Directories of the run
        itself are protected by its own lock.
        """
        others = [path for path in directories if not self._is_own(path)]
        self.messages += [*self.sinks.hold_outputs(others), *self.disks.hold_outputs(others)]

    def clear(self) -> list[str]:
        """Forget an earlier run: its outputs and rejects, its ledger, header, status and quarantine.

        Outputs go first: nothing but the ledger knows them. Return what was removed of them.
        """
        # Those of an earlier version too, whose lines a run could not continue from.
        files = list(dict.fromkeys(published_files(self.path / "ledger.jsonl")))
        published = [
            path for path in files if not path.startswith((f"{self.quarantine_path}/", f"{self.measures_path}/"))
        ]
        for path in filter(is_url, published):
            remove(path, storage_options=self.options_of(path))
        remove_for_good(path for path in published if not is_url(path))
        self._close_ledger()
        had_lines = (ledger := self.path / "ledger.jsonl").exists() and ledger.stat().st_size
        earlier = [path.name for path in self.path.glob("events.*.log")]
        for name in (*LEFT_BY_A_RUN, *earlier):
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self.quarantine, ignore_errors=True)
        shutil.rmtree(self.path / MEASURES_DIR, ignore_errors=True)
        if had_lines:  # a machine that stops must not bring them back under the header of the run that starts now
            force_names(str(self.path))
        return published

    def resume(self, plan: Plan, *, rejects_path: str | None, mended: bool = False) -> Mapping[int, CommitRecord]:
        """Return what an earlier run of the same plan has committed; refuse another plan's directory.

        `mended`: the code of stages may have changed since, to do what it could not do before.
        """
        header = header_of(plan, rejects_path)
        is_same = has_text(self.path / "header.json", as_texts(header))
        before = header if is_same else self._header_before()
        records, damaged = read_ledger(self.path / "ledger.jsonl", plan)
        is_empty = not records and not damaged
        if before is None and not is_empty:
            raise HeaderMissing(
                f"{self.shown}: expected header.json to say what was run here; it is missing or damaged. "
                f"Remove the directory and the files the run has written, {HOW_TO_GO_ON}"
            )
        if not is_same:
            now = in_full(header)
            if before is not None and before != now and not is_empty:
                if not mended or not differs_in_code_only(before, now):
                    raise ResumeRefused(refusal(self.shown, before, now))
                self.messages.append(
                    f"{self.shown}: the code of a stage has changed; what was done with the earlier code is kept, "
                    "except for source partitions with quarantined documents"
                )
            # If nothing is committed, nothing can be mixed; else it must not be lost with the machine.
            self._write("header.json", as_texts(header), forced=not is_empty)
        if damaged and len(records) < len(plan.sources):
            what = "1 line is damaged; its partition is" if damaged == 1 else None
            what = what or f"{damaged} lines are damaged; their partitions are"
            self.messages.append(f"{self.shown}/ledger.jsonl: {what} done again")
        self._ledger = LedgerFile(self.path / "ledger.jsonl", self.disks.file_mode)
        return records

    def _header_before(self) -> Header | None:
        # It is forced to disk with the first line of the ledger; before that a machine that stops may leave it empty.
        return parse(self.shown, self._read("header.json"))

    # Files

    def claim_staging(self, directories: Iterable[str]) -> None:
        """Remove what earlier sessions left under temporary names; `close` removes what is this session's."""
        directories = list(dict.fromkeys(directories))
        self.disks.claim_staging(directories)
        self.sinks.claim_staging(directories)

    def make_staging(self) -> None:
        """Make the temporary directories of this session."""
        self.disks.make_staging()
        self.sinks.make_staging()

    def finish_publication(
        self, records: Mapping[int, CommitRecord], files_of: FilesOf = all_files
    ) -> Mapping[int, CommitRecord]:
        """Do the renames a crash prevented. Return the records whose files are there, as they were written.

        Of outputs and rejects the size is compared, and after a restart the content too. What lies in the run directory
        is the run's memory, and no reader would notice damage there: its content is compared in any case.
        """
        if not records:
            return {}
        restarted = self._noted_start() not in (machine_start(), ON_DISK)
        num_published, roots = 0, array("q")
        published = publish_committed(records.values(), self.options_of, files_of)
        while some := list(islice(published, VERIFIED_AT_A_TIME)):
            num_published += len(some)
            damaged = self._damaged(some, files_of, everything=restarted)
            roots.extend(record.root for record in some if record.root not in damaged)
        sound = _only(records, sorted(roots))
        again = len(records) - len(sound)
        undone = (record for root, record in records.items() if root not in sound) if again else ()
        self._replaceable = {file.final for record in undone for file in files_of(record)}
        if restarted:
            self._note_start(machine_start())
            self.messages.append(
                f"{self.shown}: the machine was restarted, or is a different one, since files were written; "
                f"checked those of {num_published} source partitions; {again} are done again"
            )
        elif again:
            what = "1 source partition is" if again == 1 else f"{again} source partitions are"
            self.messages.append(f"{self.shown}: {what} done again: their files are gone or not as they were written")
        return sound

    def forget_quarantined(self, records: Mapping[int, CommitRecord]) -> Mapping[int, CommitRecord]:
        """Return the records of which nothing is in quarantine; the others will be done again, whatever happens now.

        Their quarantine files go: a partition whose files are not all there counts as not done, so that no crash from
        here on can leave a document neither in quarantine nor in the output.
        """
        failed = {
            root: record
            for root, record in records.items()
            if any(counts.quarantined or counts.lost_parts for _, counts in record.counts)
        }
        for record in failed.values():
            finals = {file.final for file in (*record.files, *record.side_files)}
            self._replaceable |= finals
            self._superseded[record.root] = finals
            own = [file.final for file in record.side_files if file.final.startswith(f"{self.quarantine_path}/")]
            for path in own:
                remove(path, storage_options=self.options_of(path))
        if failed:
            self.remove_report()
            documents = sum(counts.quarantined for record in failed.values() for _, counts in record.counts)
            one = len(failed) == 1
            parts = (
                f"1 source partition with {documents:,}"
                if one
                else f"{len(failed)} source partitions with {documents:,}"
            )
            inside = f"quarantined document{'s' * (documents != 1)}"
            self.messages.append(f"{self.shown}: {parts} {inside} {'is' if one else 'are'} done again")
        return _only(records, (root for root in records if root not in failed)) if failed else records

    def remove_superseded(self, records: Sequence[CommitRecord]) -> None:
        """Remove what partitions gave before and no longer give, as they are about to be committed again.

        Before the new line: a crash in between leaves a partition whose files are not all there, which is done again.
        """
        given = {file.final for record in records for file in all_files(record)}
        for record in records:
            # What is no longer replaceable has since been committed for another partition.
            gone = (self._superseded.pop(record.root, set()) & self._replaceable) - given
            for path in sorted(gone):
                remove(path, storage_options=self.options_of(path))

    def _damaged(self, records: Iterable[CommitRecord], files_of: FilesOf, *, everything: bool) -> set[int]:
        """Read what was committed, or only the run's memory in it; return whose files are not as written."""
        files = [
            (record.root, file)
            for record in records
            for file in files_of(record)
            if everything or self._is_memory(file.final)
        ]
        return {root for (root, _), sound in zip(files, verify(file for _, file in files), strict=True) if not sound}

    def verify_side_files(self, records: Mapping[int, CommitRecord]) -> Mapping[int, CommitRecord]:
        """Return the records whose rejected and quarantined documents are there. Outputs may be gone, as planned."""
        return self.finish_publication(records, lambda record: record.side_files)

    def check_not_in_the_way(self, records: Sequence[CommitRecord]) -> None:
        """Raise RunFailed if publishing these would replace a file of others, or of another partition."""
        check_not_in_the_way(
            records, self._owners, self.options_of, may_replace=self._replaceable.__contains__, is_own=self._is_own
        )

    def _is_own(self, path: str) -> bool:
        """Whether a directory or file is the run's own: nothing else writes there or reads it."""
        return f"{path}/".startswith((f"{self.quarantine_path}/", f"{self.measures_path}/", f"{self.root}/exchange-"))

    def _is_memory(self, path: str) -> bool:
        """Whether only runs read a file: the run's own, or what a step of a workflow has left for the next one."""
        return self._is_own(path) or f"/{HIDDEN}/" in path

    def complete_records(self, plan: Plan, committed: Mapping[int, CommitRecord]) -> None:
        """Let stages complete what is in quarantine from the facts of all partitions, now that all are done.

        What is changed is committed as anything else is: a line of the ledger with the new size and checksum, then a
        rename. A crash in between leaves the old file with the old line, or a rename for the next run to do.
        """
        touched = [record for record in committed.values() if any(map(self._is_quarantine, record.side_files))]
        completers = completers_of(plan, committed.values()) if touched else []
        completed = {}
        staging = f"{self.quarantine_path}/{STAGING_DIR}/{self.session}"
        options = self.options_of(staging)
        for record in touched if completers else []:
            side_files = tuple(
                completed_file(file, completers, staging, options) if self._is_quarantine(file) else file
                for file in record.side_files
            )
            if side_files != record.side_files:
                completed[record.root] = side_files
        if not completed:
            return
        lines = read_ledger(self.path / "ledger.jsonl", plan).records  # with their counts; none in a temporary run
        if self.durable:
            before = {file for record in touched for file in record.side_files}  # these have got their names long ago
            for file in (file for files in completed.values() for file in files if file not in before):
                force_file(file.temporary)
        if lines:
            self.append([lines[root]._replace(side_files=files) for root, files in completed.items() if root in lines])
        changed = [file for files in completed.values() for file in files]
        publish_all(changed, self.options_of)
        self.keep_private(changed)

    def _is_quarantine(self, file: StagedFile) -> bool:
        return file.final.startswith(f"{self.quarantine_path}/")

    def _noted_start(self) -> str:
        return self._read("start")

    def _note_start(self, start: str) -> None:
        """Note that all the ledger names was written, or found to be whole, since this start."""
        self._write("start", [start], forced=True)

    def begin(self) -> None:
        """Begin to put to disk what a later run has to know about the lines of this one, names included.

        It is there before the first of them, which waits for it. Meanwhile the workers start, which takes longer. All
        at once: a file system puts what waits to disk together. A start that is damaged on the way matches no machine,
        so a later run looks at the files.
        """
        if not self.durable:
            self._write("start", [machine_start()])
        elif not self._noted_start():
            self._write("start", [ON_DISK])
        forcing = ThreadPoolExecutor(3)
        self._beginning = [forcing.submit(force_file, str(self.path / name)) for name in ("header.json", "start")]
        self._beginning.append(forcing.submit(force_names, str(self.path), above=True))
        forcing.shutdown(wait=False)

    def _wait_for_beginning(self) -> None:
        if not self._beginning:
            self.begin()
        for under_way in self._beginning:
            under_way.result()
        self._has_begun = True

    def append(self, records: Sequence[CommitRecord]) -> None:
        """Write ledger lines and force them to disk, all at once. If that fails, none of them has been written."""
        ledger = self._ledger
        if ledger is None:
            raise RuntimeError("expected a run directory that is open")
        with explained(ledger.path):
            ledger.check_is_in_place()
            if not self._has_begun:
                self._wait_for_beginning()
            ledger.append(records)
        self._owners.add(records)
        self._replaceable.difference_update(file.final for record in records for file in all_files(record))

    def write_status(self, snapshot: RunSnapshot) -> None:
        self._write("status.json", [json.dumps({"pid": os.getpid(), **msgspec.to_builtins(snapshot)})])

    def append_history(self, lines: bytes) -> None:
        """Append lines to the history of the run, below what may be half a line of a session that was killed."""
        with explained(self.path / "metrics.jsonl"), self.private_file("metrics.jsonl").open("r+b") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                lines = lines if file.read(1) == b"\n" else b"\n" + lines
            file.write(lines)

    def write_report(self, result: RunResult) -> None:
        books = result.books() | setting(result.wall_s, result.peak_memory_bytes)
        self._write("report.json", with_long_list(books, "output_files", map(json.dumps, result.output_files)))

    def write_measured(self, measured: "MeasuredRun") -> None:
        self._write("measured.json", [json.dumps(msgspec.to_builtins(measured), indent=1)])

    def has_report(self) -> bool:
        """Whether the run in this directory has come to its end, its books closed."""
        # It is empty, or zeros, if the machine stopped while it was written.
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            text = (self.path / "report.json").read_bytes()
            msgspec.json.decode(text, type=msgspec.Raw)  # scanned, not built: it names every output file
            return text.startswith(b"{") and b"\0" not in text
        return False

    def remove_report(self) -> None:
        """The run goes on: what was reported about it no longer holds."""
        (self.path / "report.json").unlink(missing_ok=True)

    def private_file(self, name: str) -> Path:
        """Return the path of a file, created with the mode of this run's files."""
        path = self.path / name
        path.touch(mode=self.disks.file_mode)
        return path

    def keep_private(self, files: Iterable[StagedFile]) -> None:
        """Give the run's own published files the mode its files have, unknown to workers. Outputs stay as is."""
        for file in files:
            if self.disks.file_mode == 0o600 and self._is_own(file.final) and not is_url(file.final):
                with contextlib.suppress(FileNotFoundError):  # the next to look at it will say so
                    Path(plain(file.final)).chmod(self.disks.file_mode)

    def _read(self, name: str) -> str:
        """What a small file says; nothing if it is not there. Damaged bytes make it say something else."""
        with contextlib.suppress(FileNotFoundError):
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        return ""

    def write_recipe(self, text: str) -> None:
        """Keep what the pipeline was built from, once for all segments."""
        if text:
            self._write("recipe.yaml" if self.root == self.path else "../recipe.yaml", [text])

    def _write(self, name: str, texts: Iterable[str], *, forced: bool = False) -> None:
        """Write a file, its text in pieces: a report names every output."""
        with whole_file(self.path / name, forced=forced) as temporary:
            temporary.touch(mode=self.disks.file_mode)
            with temporary.open("w", encoding="utf-8") as file:
                file.writelines(texts)

    def close(self) -> None:
        """Remove what is temporary and let the directory go."""
        self.sinks.close()
        self.disks.close()
        if self._lock is not None:
            self._lock.release()
        self._close_ledger()
        self._lock = None

    def _close_ledger(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
        self._ledger = None


def _only(records: Mapping[int, CommitRecord], roots: Iterable[int]) -> Mapping[int, CommitRecord]:
    """Return the records of some partitions, given in order."""
    return records.only(roots) if isinstance(records, LedgerRecords) else {root: records[root] for root in roots}
