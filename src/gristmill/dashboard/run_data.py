"""`RunData`: everything a run directory says about a run, live or finished, in one form for everything that shows it.

    documents   what became of them: the same bytes for any number of workers, after crashes, on every executor
    time        where it went, and what it took: different each time
    setting     what was run, on what, by which versions, where

Numbers of documents come from the ledger and from nowhere else. What a ledger says is read by the layers that write it;
the command that knows them hands it in as a `RunSource`. Nothing is drawn or said in words here.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from gristmill.dashboard.run_rules import RuleData, SampleShown, SliceTable, rules_of, samples_of, slices_of
from gristmill.dashboard.run_time import Efficiency, RunTime, read_time
from gristmill.metrics.history import read_history
from gristmill.metrics.observation_files import ObservationReader
from gristmill.metrics.snapshot import ErrorCount, RunSnapshot, StageCounts, balance
from gristmill.metrics.tally import Distribution
from gristmill.storage.file_system import file_system, is_url

FORMAT = 1  # of the JSON; a field that is new does not change it, one that means something else does
ENDED = ("finished", "stopped", "failed")
INPUTS_SHOWN = 50
DIRECTORIES_SHOWN = 20
CONFIGURATION_CHARS = 2_000  # of a stage: one with a thousand words in a list is cut


# What the command hands in


class Segment(msgspec.Struct, frozen=True):
    """One segment of a run: its header as the file has it, and what its ledger adds up to."""

    header: Mapping[str, object]  # empty if the file is missing or damaged
    counts: Mapping[str, StageCounts]  # in the order of the plan; rows between segments are neither written nor read
    partitions: int
    damaged_lines: int = 0


class Life(msgspec.Struct, frozen=True):
    """Which process runs here, or ran here last."""

    process: str = ""  # in words; nothing if that is not known
    is_alive: bool = False


class RunSource(Protocol):
    """A run directory on a disk or a store, and what only the writers of its files can read."""

    def read(self, name: str) -> bytes | None:
        """Return what a file says, or None if it is not there."""
        ...

    def segments(self) -> Sequence[Segment]:
        """Return what is committed. A run without an exchange is one segment."""
        ...

    def errors(self) -> Sequence[ErrorCount]:
        """Return what is in quarantine, by stage and kind."""
        ...

    def life(self) -> Life:
        """Return which process runs here."""
        ...


# What became of the documents


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """read + created = written + dropped + quarantined, of committed partitions."""

    read: int = 0
    created: int = 0
    written: int = 0
    dropped: int = 0
    quarantined: int = 0
    lost_parts: int = 0
    lost_bytes: int = 0
    partitions: int = 0
    partitions_total: int = 0
    balanced: bool = True


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why documents left at a stage, and how many. A quarantined document has no reason: see `quarantine`."""

    reason: str
    documents: int
    num_bytes: int | None = None  # None where nothing was recorded


class StageFlow(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of the funnel."""

    stage: str
    kind: str  # the class
    documents_in: int
    documents_out: int
    read: int
    created: int
    written: int
    dropped: int
    quarantined: int
    bytes_in: int
    lost_parts: int
    lost_bytes: int
    bytes_out: int | None
    reasons: tuple[Reason, ...]
    counted: dict[str, int]  # what the author of the stage counts
    observed: dict[str, dict[str, float]]  # figures of the values the author has noted


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of error of one stage, with an example."""

    stage: str
    kind: str
    message: str
    documents: int
    lost_parts: int
    lost_bytes: int
    place: str
    traceback: str


class Documents(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about documents."""

    books: Books
    funnel: tuple[StageFlow, ...]
    rules: tuple[RuleData, ...] = ()  # none where nothing was recorded, as with `--observe off`
    samples: tuple[SampleShown, ...] = ()
    slices: tuple[SliceTable, ...] = ()
    quarantine: tuple[ErrorGroup, ...] = ()


# What was run


class StageSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a stage, as the header of the run has it."""

    stage: str
    configuration: str


class InputFile(msgspec.Struct, frozen=True, kw_only=True):
    """One input. `version` is the store's, or when it was changed: with the size it is the fingerprint."""

    path: str
    num_bytes: int
    version: str


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What was run, on what, where."""

    pipeline: str = ""
    fingerprint: str = ""
    version: str = ""  # of gristmill
    stages: tuple[StageSetting, ...] = ()
    inputs: tuple[InputFile, ...] = ()  # the first of them
    num_inputs: int = 0
    input_bytes: int = 0
    output_files: int = 0
    output_directories: tuple[str, ...] = ()
    rejects_path: str | None = None
    versions: dict[str, str] = {}  # of the session that ended the run
    host: dict[str, str] = {}


class RunData(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    run_dir: str
    name: str
    state: str  # starting, running, draining, finished, stopped, failed, or killed
    is_live: bool
    process: str
    documents: Documents
    time: RunTime
    setting: Setting
    messages: tuple[str, ...] = ()


def read_run(source: RunSource, *, examples: bool = True) -> RunData:
    """Read a run directory. What is missing or damaged in it is left out: a report of the rest is better than none.

    Without `examples` no text of a document is in what is returned.
    """
    segments = source.segments()
    report = _object(source.read("report.json"))
    snapshot = _snapshot(source.read("status.json"))
    life = source.life()
    counts = {name: own for segment in segments for name, own in segment.counts.items()}
    setting = _setting(segments, report)
    return RunData(
        run_dir=str(source),
        name=setting.pipeline or (snapshot.name if snapshot else ""),
        state=_state(snapshot, report, life),
        is_live=life.is_alive,
        process=life.process,
        documents=_documents(source, segments, counts, examples=examples),
        time=read_time(snapshot, report, counts, read_history(source.read("metrics.jsonl") or b"")),
        setting=setting,
        messages=snapshot.messages if snapshot else (),
    )


def _documents(
    source: RunSource, segments: Sequence[Segment], counts: Mapping[str, StageCounts], *, examples: bool
) -> Documents:
    place, kinds = str(source), _kinds(segments)
    seen = ObservationReader(place, file_system(place) if is_url(place) else None).refresh()
    orders = {stage: [tally.name for tally in seen.tallies if tally.stage == stage] for stage in counts}
    dropped = {(name, reason): number for name, own in counts.items() for reason, number in own.dropped.items()}
    return Documents(
        books=_books(segments, list(counts.values())),
        funnel=tuple(_flow(name, own, kinds.get(name, ""), orders[name]) for name, own in counts.items()),
        rules=rules_of(seen, dropped, examples=examples),
        samples=samples_of(seen, examples=examples),
        slices=slices_of(seen),
        quarantine=tuple(map(_error_group, source.errors())),
    )


def _snapshot(content: bytes | None) -> RunSnapshot | None:
    """The last snapshot; one of another version is read as far as it is the same."""
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=RunSnapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _object(content: bytes | None) -> dict[str, object]:
    try:
        found = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _state(snapshot: RunSnapshot | None, report: Mapping[str, object], life: Life) -> str:
    said = snapshot.state if snapshot else "finished" if report else "running"
    return "killed" if said not in ENDED and not life.is_alive else said


def _books(segments: Sequence[Segment], counts: Sequence[StageCounts]) -> Books:
    # In a run with exchanges the first segment has the input; the others come after it.
    first = segments[0] if segments else None
    total = first.header.get("partitions") if first else 0
    return Books(
        read=sum(own.read for own in counts),
        created=sum(own.created for own in counts),
        written=sum(own.written for own in counts),
        dropped=sum(own.dropped_total for own in counts),
        quarantined=sum(own.quarantined for own in counts),
        lost_parts=sum(own.lost_parts for own in counts),
        lost_bytes=sum(own.lost_bytes for own in counts),
        partitions=first.partitions if first else 0,
        partitions_total=total if isinstance(total, int) else 0,
        balanced=balance(list(counts)) == 0,
    )


def _flow(name: str, counts: StageCounts, kind: str, order: Sequence[str]) -> StageFlow:
    """Reasons are in the order in which the rules are applied, as far as it is known; then the commonest first."""
    places = {reason: place for place, reason in enumerate(order)}
    sizes = counts.dropped_bytes
    last = len(order)
    reasons = sorted(counts.dropped.items(), key=lambda item: (places.get(item[0], last), -item[1], item[0]))
    return StageFlow(
        stage=name,
        kind=kind,
        documents_in=counts.documents_in or counts.read,
        documents_out=counts.documents_out or counts.written,
        read=counts.read,
        created=counts.created,
        written=counts.written,
        dropped=counts.dropped_total,
        quarantined=counts.quarantined,
        bytes_in=counts.bytes_in,
        lost_parts=counts.lost_parts,
        lost_bytes=counts.lost_bytes,
        bytes_out=counts.bytes_out or None,  # ledgers of earlier versions have none
        reasons=tuple(
            Reason(reason=reason, documents=number, num_bytes=sizes.get(reason)) for reason, number in reasons
        ),
        counted=dict(sorted(counts.counted.items())),
        observed={key: Distribution(slots).to_json() for key, slots in sorted(counts.observed.items())},
    )


def _error_group(error: ErrorCount) -> ErrorGroup:
    """Without the document: it stays where it is private, in quarantine."""
    return ErrorGroup(
        stage=error.stage,
        kind=error.kind,
        message=error.message,
        documents=error.count,
        lost_parts=error.lost_parts,
        lost_bytes=error.lost_bytes,
        place=error.example.place,
        traceback=error.example.traceback,
    )


def _stages(header: Mapping[str, object]) -> list[tuple[str, str]]:
    found = header.get("stages")
    pairs = found if isinstance(found, list) else []
    return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2]


def _kinds(segments: Sequence[Segment]) -> dict[str, str]:
    """The class of each stage, without its module."""
    configurations = (pair for segment in segments for pair in _stages(segment.header))
    return {name: str(_object(text.encode()).get("class", "")).rpartition(".")[2] for name, text in configurations}


def _setting(segments: Sequence[Segment], report: Mapping[str, object]) -> Setting:
    header = segments[0].header if segments else {}
    inputs = header.get("inputs")
    rows = [row for row in (inputs if isinstance(inputs, list) else []) if isinstance(row, list) and len(row) == 3]
    outputs = report.get("output_files")
    files = [str(path) for path in outputs] if isinstance(outputs, list) else []
    directories = dict.fromkeys(path.rpartition("/")[0] for path in files)
    rejects = header.get("rejects_path")
    return Setting(
        pipeline=str(header.get("pipeline", "")),
        fingerprint=str(header.get("fingerprint", "")),
        version=str(header.get("version", "")),
        stages=tuple(
            StageSetting(stage=name, configuration=_cut(text, CONFIGURATION_CHARS))
            for segment in segments
            for name, text in _stages(segment.header)
        ),
        inputs=tuple(InputFile(path=str(a), num_bytes=int(b), version=str(c)) for a, b, c in rows[:INPUTS_SHOWN]),
        num_inputs=len(rows),
        input_bytes=sum(max(0, int(row[1])) for row in rows),
        output_files=len(files),
        output_directories=tuple(directories)[:DIRECTORIES_SHOWN],
        rejects_path=rejects if isinstance(rejects, str) else None,
        versions=_words(report.get("versions")),
        host=_words(report.get("host")),
    )


def _words(found: object) -> dict[str, str]:
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


__all__ = ["Books", "Documents", "Efficiency", "Life", "RunData", "RunSource", "RunTime", "Segment", "read_run"]
