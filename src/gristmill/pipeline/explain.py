"""What became of a document, and why: found again, run again, and compared with what the run has written down.

Nothing is recorded for this. Stages are deterministic, so the document is taken through them once more; what a re-run
cannot know is read: quarantine, rejects, outputs, the ledger, `duplicates.parquet`, the event log.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from gristmill.engine.plan import AnyStage, Plan
from gristmill.engine.replay import read_header
from gristmill.engine.replay import replay as steps_of
from gristmill.engine.task_story import TaskStory
from gristmill.errors import ConfigError, EngineBug, NoInputError, ReadError, nearest
from gristmill.pipeline.explanation import Duplicate, Explanation, Place
from gristmill.pipeline.find_document import (
    Found,
    document_at,
    document_number,
    find_id,
    is_named,
    may_be_there,
    number_of,
    sample_ids,
)
from gristmill.pipeline.id_index import may_hold
from gristmill.pipeline.re_execution import ReExecution, document_of, re_execute, read_partition
from gristmill.runs.ledger import CommitRecord, header_of, in_full, parse, refusal, replay
from gristmill.storage.file_system import disk_path, is_url
from gristmill.tasks import Batch, DocumentBatch, FileGroupTask

if TYPE_CHECKING:
    from gristmill.pipeline.pipeline import Pipeline

DUPLICATES = "duplicates.parquet"
LONG_LOG_BYTES = 32 << 20  # a log beyond this takes more than seconds to replay


class _Run(NamedTuple):
    """What a run directory says."""

    home: Path
    header: Mapping[str, object]
    records: Mapping[int, CommitRecord]  # of the first segment: its partitions are the input's
    outputs: list[str]
    rejects: list[str]
    quarantine: list[str]

    @property
    def inputs(self) -> list[str]:
        """The files it has read."""
        return [str(entry[0]) for entry in cast("list[list[object]]", self.header.get("inputs") or [])]

    def record(self, partition: str) -> CommitRecord | None:
        return next((record for record in self.records.values() if record.name == partition), None)


def explain_document(
    pipeline: "Pipeline | None",
    run_dir: str | Path,
    document_id: str,
    *,
    source: str | None = None,
    with_models: bool = False,
) -> Explanation:
    """Tell what a run did to a document. Without a pipeline, only what the run has written down about it.

    `source` is FILE:LINE, for a document without an id or with one that several have.
    """
    run = _open(run_directory(run_dir))
    written = _written(run, document_id) if document_id else []
    found = _at_source(source) if source else _in_sources(run, document_id)
    duplicates = _duplicates(run, document_id, found)
    plan, remarks = _plan(pipeline, run)
    partition, batch = ("", None) if plan is None else _read_again(plan, run, found, written, document_id)
    if found is None and not written and not duplicates and batch is None:
        raise ConfigError(_unknown(run, document_id))
    done = None
    if plan is not None and batch is not None:
        recorded = next((one.document for place, one in written if place.kind in ("output", "reject")), None)
        stages = [(name, stage) for group in plan.groups for name, stage in _named(group.names, group.stages)]
        done = re_execute(batch.batch, stages[batch.read_by :], recorded=recorded, with_models=with_models)
        if plan.then is not None:
            remarks.append("The run has an exchange: what follows it depends on other documents and is not run again.")
    elif pipeline is None:
        remarks.append("There is no pipeline to run again: this is what the run has written down.")
    places = [place for place, _ in written]
    disagreements = [] if done is None else _disagreements(done, written, run.record(partition))
    return Explanation(
        document_id,
        str(run.home),
        _verdict(done, places, duplicates),
        None if found is None else Place("source", found.path, found.line, found.row),
        partition,
        () if done is None else tuple(done.passages),
        tuple(places),
        tuple(duplicates),
        tuple(disagreements),
        tuple(remarks),
        tuple(_history(run.home, partition)) if partition else (),
    )


def _named(names: Sequence[str], stages: Sequence[AnyStage]) -> Iterator[tuple[str, AnyStage]]:
    return zip(names, stages, strict=True)


# What the run has written


def run_directory(run_dir: str | Path) -> Path:
    """A run directory, which has to be on a disk."""
    try:
        return disk_path(str(run_dir), who="explain")
    except ConfigError as error:
        raise ConfigError(
            f"{error}. Input and output may be on a store, but not the run directory (run it with `--run-dir PATH`); "
            f"what was dropped and why, with examples, is in `gristmill report` of a store too"
        ) from None


def _open(given: Path) -> _Run:
    """Read a run directory, or the one in an output directory; of a deduplication, all of its runs."""
    homes = [home for home in (given, given / ".gristmill") if _headers(home)]
    runs = homes[:1] or sorted(path for path in given.glob(".gristmill/*/*") if _headers(path))
    if not runs:
        raise ConfigError(f"expected the directory of a run (with header.json in it); got {str(given)!r}")
    segments = [segment for run in runs for segment in sorted(run.glob("segment-*")) or [run]]
    header = parse(runs[0], _headers(runs[0])[0].read_text(errors="replace"))
    if header is None:
        raise ConfigError(f"{_headers(runs[0])[0]}: expected to read there what was run; it is damaged")
    records = [_records(segment) for segment in segments]
    sides = [file.final for each in records for record in each.values() for file in record.side_files]
    sides = [path for path in sides if may_be_there(path)]
    quarantine = [path for path in sides if "/quarantine/" in path and path.endswith(".jsonl")]
    return _Run(
        runs[0] if homes else given,
        header,
        records[0],
        [file.final for record in records[-1].values() for file in record.files if may_be_there(file.final)],
        [path for path in sides if path not in quarantine and path.endswith(".jsonl") and "/payloads/" not in path],
        [path for path in quarantine if "/payloads/" not in path],
    )


def _headers(home: Path) -> list[Path]:
    return [path for path in (home / "header.json", home / "segment-1" / "header.json") if path.is_file()]


def _records(segment: Path) -> Mapping[int, CommitRecord]:
    ledger = segment / "ledger.jsonl"
    if not ledger.is_file():
        return {}
    with ledger.open() as lines:
        return replay(lines).records


def _written(run: _Run, document_id: str) -> list[tuple[Place, Found]]:
    """Quarantine and rejects first: they are few, and say why."""
    entries: list[tuple[Place, Found]] = []
    for one in find_id(run.quarantine, document_id, quoted=False):
        entry = {key: one.document.get(key) for key in ("stage", "error", "kind", "source", "line")}
        details = {key: value for key, value in entry.items() if value not in (None, "")}
        entries.append((Place("quarantine", one.path, one.line, details=details), one))
    for one in find_id(run.rejects, document_id, quoted=False):
        names = ("reject_stage", "reject_reason", "reject_value", "reject_threshold")
        details = {name.removeprefix("reject_"): one.document.get(name) for name in names}
        about = [one.document[key] for key in one.document if key.startswith("reject_") and key != "reject_id"]
        if not one.is_id and any(is_named(value, document_id) for value in about):
            continue  # another document, dropped for a reason that names this one: a duplicate that lost to it
        entries.append((Place("reject", one.path, one.line, details=details), one))
    entries += [(Place("output", one.path, one.line, one.row), one) for one in find_id(run.outputs, document_id)]
    return entries


def _duplicates(run: _Run, document_id: str, found: Found | None) -> list[Duplicate]:
    """Which documents it lost to. One that was not named by a column is named by its partition and its row."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    of_a_workflow = [p / DUPLICATES for p in (run.home, *run.home.parents[:2]) if (p / DUPLICATES).is_file()]
    of_stages = sorted(run.home.glob(f"search/*/{DUPLICATES}"))
    names = [document_id] if document_id else []
    if found is not None and (label := _label(run, found)):
        names.append(label)
    tables = [pq.read_table(file, filters=pc.field("id").isin(names)) for file in (*of_a_workflow[:1], *of_stages)]
    return [
        Duplicate(
            _user_id(str(row["kept_id"]), str(row["kept_source"])),
            float(row["similarity"]),
            str(row["source"]),
            str(row["kept_source"]),
        )
        for table in tables
        for row in table.to_pylist()
    ]


def _label(run: _Run, found: Found) -> str:
    """What a deduplication calls a document that no column names, where every file is one partition."""
    inputs = run.inputs
    if run.header.get("partitions") != len(inputs) or found.path not in inputs:
        return ""
    record = run.records.get(inputs.index(found.path))
    return "" if record is None else f"{record.name}:{number_of(found)}"


def _user_id(label: str, path: str) -> str:
    """The id its user knows a document by, if it has one."""
    number = label.rpartition(":")[2]
    if not number.isdigit() or not may_be_there(path):
        return label
    document = document_number(path, int(number))
    return label if document is None or document.get("id") is None else f"{document['id']} ({label})"


def _at_source(source: str) -> Found:
    path, _, line = source.rpartition(":")
    if not path or not line.isdigit() or int(line) < 1:
        raise ConfigError(f"--source: expected FILE:LINE, lines counted from 1; got {source!r}")
    if not may_be_there(path):
        raise ConfigError(f"--source: expected a file; there is no {path!r}")
    found = document_at(path, int(line))
    if found is None:
        raise ConfigError(f"--source: expected a document in line {line} of {path}; there is none")
    return found


def _in_sources(run: _Run, document_id: str) -> Found | None:
    here = [path for path in run.inputs if may_be_there(path)]
    said = may_hold(run.home, document_id)
    likely = [path for path in here if said.get(path, True)]
    found = find_id(likely, document_id)
    if not found and len(likely) < len(here):  # a field of another name may hold it, and filters know of `id` only
        found = find_id([path for path in here if not said.get(path, True)], document_id)
    return found[0] if found else None


def _unknown(run: _Run, document_id: str) -> str:
    inputs = run.inputs
    here = [path for path in inputs if may_be_there(path)]
    searched = f"{len(here):,} of its {len(inputs):,} input files" if len(here) < len(inputs) else "all its input"
    near = nearest(document_id, sample_ids(here[:20]))
    how = "" if near else "; --source FILE:LINE explains a document without an id"
    who = f"explain: expected the id of a document of {run.home}"
    return f"{who}; got {document_id!r}, which is not in {searched}{near}{how}"


# The document, read again


class _Read(NamedTuple):
    batch: "Batch[object]"  # of one document
    read_by: int  # stages that have been passed


def _plan(pipeline: "Pipeline | None", run: _Run) -> tuple[Plan | None, list[str]]:
    if pipeline is None:
        return None, []
    from gristmill.backends.local import LocalExecutor

    try:
        plan = pipeline.plan(LocalExecutor(num_workers=0))
    except NoInputError as error:
        return None, [f"The input is not there any more: {error}"]
    rejects = run.header.get("rejects_path")
    now = in_full(header_of(plan, None if rejects is None else str(rejects)))
    if run.header and now["fingerprint"] != run.header.get("fingerprint"):
        said = refusal(run.home, dict(run.header), now).splitlines()
        differences = [line.strip() for line in said[1:] if line.startswith("  ")]
        return plan, ["The pipeline is not the one of the run:", *(f"  {line}" for line in differences[:8])]
    return plan, []


def _read_again(
    plan: Plan, run: _Run, found: Found | None, written: Sequence[tuple[Place, Found]], document_id: str
) -> tuple[str, _Read | None]:
    """The document as the readers give it, in a batch by itself, and the partition it is in."""
    stages = [stage for group in plan.groups for stage in group.stages]
    for number in _partitions(plan, run, found, written, document_id):
        task = plan.sources[number]
        task.task_id = plan.source_names[number]
        for batch, read_by in read_partition(task, stages):
            whole, passed = _with_neighbours(batch, stages, read_by)
            row = _row(whole, found, document_id)
            if row is not None:
                one = whole.take([row])
                one.task_id = whole.task_id
                one.inherit(whole)
                return plan.source_names[number], _Read(one, passed)
    return "", None


def _partitions(
    plan: Plan, run: _Run, found: Found | None, written: Sequence[tuple[Place, Found]], document_id: str
) -> Iterator[int]:
    """Where to look: the partition the bytes were found in, or the one that gave a file with the document."""
    if found is not None:
        for number, task in enumerate(plan.sources):
            if isinstance(task, FileGroupTask) and any(_holds(part, found) for part in task.parts()):
                yield number
        return
    paths = {place.path for place, _ in written}
    for number, record in run.records.items():
        if any(file.final in paths for file in (*record.files, *record.side_files)):
            yield number
            return
    # An id made of the partition's name and a number, as `AddId` makes them.
    yield from (number for number, name in enumerate(plan.source_names) if name and f"{name}_" in document_id)


def _holds(part: object, found: Found) -> bool:
    path, bounds = part.path, part.part  # type: ignore[attr-defined]
    if path != found.path and (is_url(path) or Path(path).resolve() != Path(found.path).resolve()):
        return False
    if bounds is None or found.start is None or len(bounds) < 2:
        return True
    return bool(bounds[0] <= found.start < bounds[1])


def _with_neighbours(batch: "Batch[object]", stages: Sequence[AnyStage], passed: int) -> "tuple[Batch[object], int]":
    """Run stages right after the reader that look at all documents of a partition, as one that numbers them does."""
    for stage in stages[passed:]:
        if stage.rows_are_independent or stage.is_exchange or stage.searches:
            break
        made = stage.process(batch)
        if not isinstance(made, Batch) or made.num_items != batch.num_items:
            break
        made.inherit(batch)
        made.task_id = batch.task_id
        batch, passed = made, passed + 1
    return batch, passed


def _row(batch: "Batch[object]", found: Found | None, document_id: str) -> int | None:
    """Which of the documents it is; the first if several are the same."""
    if not isinstance(batch, DocumentBatch):
        return next((row for row in range(batch.num_items) if batch.item(row).id == document_id), None)
    wanted, columns = None if found is None else found.document, batch.get_columns()
    name, value = _named_by(columns, wanted, document_id)
    for column in columns if name is None else [name]:
        for row, own in enumerate(batch.column(column).to_pylist()):
            if is_named(own, value) and (wanted is None or _is_same(batch.item(row).text, wanted)):
                return row
    return None


def _named_by(columns: Sequence[str], wanted: Mapping[str, object] | None, document_id: str) -> tuple[str | None, str]:
    """Return the column that tells documents apart, and the value in it."""
    if wanted is None:
        return ("id" if "id" in columns else None), document_id
    shared = [name for name in wanted if name in columns and isinstance(wanted[name], str | int | float)]
    equal = [name for name in shared if str(wanted[name]) == document_id]
    name = next((n for n in ("id", *equal, *shared) if n in shared), None)
    return name, document_id if name is None else str(wanted[name])


def _is_same(text: str, wanted: Mapping[str, object]) -> bool:
    """Whether a row is the document that was found: stages right after the reader may have added columns."""
    try:
        own = json.loads(text)
    except ValueError:
        return True  # nothing to compare by: its name will have to do
    simple = (str, int, bool, type(None))
    keys = [key for key in own if key in wanted and isinstance(own[key], simple) and isinstance(wanted[key], simple)]
    return all(own[key] == wanted[key] for key in keys if key != "id") or not keys


# What the re-run and the books say


def _verdict(done: ReExecution | None, places: Sequence[Place], duplicates: Sequence[Duplicate]) -> str:
    if duplicates:
        return f"removed as a duplicate of {duplicates[0].kept_id}"
    by_kind = {place.kind: place.details for place in reversed(places)}
    if "quarantine" in by_kind:
        return f"in quarantine: {by_kind['quarantine'].get('stage', 'a stage')} failed on it"
    ends_early = done is None or (done.incomplete and done.kept)
    if done is not None and not (ends_early and "reject" in by_kind):
        return _outcome(done, is_there="output" in by_kind)
    if "reject" in by_kind:
        return f"dropped by {by_kind['reject'].get('stage')}: {by_kind['reject'].get('reason')}"
    return "in the output" if "output" in by_kind else "in the input; nothing else is written about it"


def _outcome(done: ReExecution, *, is_there: bool) -> str:
    """What a re-run came to."""
    if done.failed:
        return f"{done.failed} fails on it"
    gone = next((each.gone for each in done.final if each.gone is not None), None)
    if not done.kept and gone is not None:
        return f"dropped by {gone[0]}: {gone[1]}"
    split = f", {len(done.kept)} of the {len(done.final)} documents it was split into" if len(done.final) > 1 else ""
    if done.incomplete and not is_there:
        return f"kept as far as it was run again ({done.incomplete})"
    return f"kept{split}"


def _disagreements(done: ReExecution, written: Sequence[tuple[Place, Found]], record: CommitRecord | None) -> list[str]:
    said = list(dict.fromkeys(done.unstable))
    if record is None:
        return said  # not committed yet, or unknown: there is nothing to compare with
    by_kind = {kind: [pair for pair in written if pair[0].kind == kind] for kind in ("output", "reject", "quarantine")}
    if done.failed or by_kind["quarantine"]:
        return said + _about_failures(done, by_kind["quarantine"])
    if done.incomplete:
        return said
    if done.kept and not by_kind["output"] and _has_id(done):
        said.append(
            f"in the re-run it is kept, but none of the {len(record.files)} output files of its partition has it"
        )
    if not done.kept and by_kind["output"]:
        said.append(f"in the re-run it is dropped, but it is in {by_kind['output'][0][0].shown}")
    said += _about_rejects(done, [place for place, _ in by_kind["reject"]], record)
    return said + _other_values(done, by_kind["output"])


def _about_failures(done: ReExecution, quarantined: Sequence[tuple[Place, Found]]) -> list[str]:
    if not quarantined:
        return [f"{done.failed} fails on it now, but it is not in quarantine"]
    if done.failed or done.incomplete:
        return []
    stage = quarantined[0][0].details.get("stage")
    return [f"it is in quarantine, where {stage} put it; in the re-run no stage fails on it"]


def _about_rejects(done: ReExecution, rejects: Sequence[Place], record: CommitRecord) -> list[str]:
    said = []
    gone = next((each.gone for each in done.final if each.gone is not None), None)
    for place in rejects:
        then = (str(place.details.get("stage")), str(place.details.get("reason")))
        if gone is None:
            said.append(f"in the re-run it is kept, but it was rejected by {then[0]}: {then[1]}")
        elif gone != then:
            said.append(f"in the re-run it is dropped by {gone[0]}: {gone[1]}; then it was {then[0]}: {then[1]}")
    if not done.kept and gone is not None and not _is_counted(record, *gone):
        said.append(f"{gone[0]} drops it for {gone[1]}, but in its partition it has dropped no document for that")
    return said


def _is_counted(record: CommitRecord, stage: str, reason: str) -> bool:
    counts = dict(record.counts).get(stage)
    return counts is not None and any(counts.dropped.get(part, 0) for part in reason.split(", "))


def _has_id(done: ReExecution) -> bool:
    return all(isinstance(each.batch, DocumentBatch) and each.batch.has_column("id") for each in done.kept)


def _other_values(done: ReExecution, outputs: Sequence[tuple[Place, Found]]) -> list[str]:
    """Columns of the output for which a re-run gives another value."""
    if len(done.kept) != 1 or len(outputs) != 1 or not isinstance(done.kept[0].batch, DocumentBatch):
        return []
    now, then = document_of(done.kept[0].batch), outputs[0][1].document
    names = [name for name, value in then.items() if name in now and not _is_alike(now[name], value)]
    return [f"{name}: the output has a different value from the re-run" for name in names]


def _is_alike(now: object, then: object) -> bool:
    if isinstance(now, float) and isinstance(then, int | float):
        return now == then or abs(now - then) <= 1e-9 * max(abs(now), abs(then))
    return json.dumps(now, default=str) == json.dumps(then, default=str)


# The task


def _history(home: Path, partition: str) -> Iterator[str]:
    from gristmill.backends.scheduled.kept_records import read_frames

    first = home / "segment-1" if (home / "segment-1").is_dir() else home
    log = first / "events.log"
    if not log.is_file():
        return
    if log.stat().st_size > LONG_LOG_BYTES:
        yield f"`gristmill replay {home} --task {partition}` tells it: the log is long"
        return
    story, began = TaskStory(partition), None
    with log.open("rb") as file, contextlib.suppress(EngineBug, ReadError, ConfigError):
        frames = read_frames(file)
        header = read_header(frames)
        for step in steps_of(header, frames):
            began = step.now if began is None else began
            for _, sentence in story.follow(step):
                yield f"{step.now - began:+10.3f} s  {sentence}"
