"""One document taken through the stages of a plan once more, with every rule asked, even those after a refusal.

A stage gets a batch with that document alone. What a stage adds that cannot be run here (it loads a model, or asks a
server) is taken from what the run has written, if it has. Every stage is run twice: if it gives two answers, no
account of it can be right, and that is said.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from gristmill.engine.plan import AnyStage, AnyTask, Group
from gristmill.pipeline.explanation import Change, Checked, Passage, changes_between
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange.write_partitions import WritePartitions
from gristmill.stages.io.files import FileWriter
from gristmill.stages.text.judging.document_filter import DocumentFilter, Values, score_parts, to_arrow
from gristmill.stages.text.judging.judge import (
    Check,
    Decision,
    Instruments,
    KeptByFilter,
    KeptByRule,
    MeasureOfSet,
    ScoreOfText,
    Sieve,
    Step,
)
from gristmill.stages.text.judging.rule import Bounds
from gristmill.stages.text.judging.stages import ApplyRules, Filter, Score, ScoreFilter
from gristmill.stages.text.judging.statistics import plan_passes
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import Batch, DocumentBatch, Task
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.job import Job, JobFailure

FOLLOWED = 10  # documents that one was split into
JUDGING = (Score, Filter, ScoreFilter, ApplyRules)
ONE_ROW = 1


@dataclass
class Followed:
    """A document on its way. `gone`: which stage has dropped it, and why; the rest is what would have been."""

    batch: "Batch[object]"
    label: str = ""
    gone: tuple[str, str] | None = None


@dataclass
class ReExecution:
    """What came of a document. `incomplete`: a stage that was not run may have decided otherwise."""

    passages: list[Passage] = field(default_factory=list)
    final: list[Followed] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)
    incomplete: str = ""
    failed: str = ""  # the stage that raised on it

    @property
    def kept(self) -> list[Followed]:
        """The documents that would be written."""
        return [each for each in self.final if each.gone is None]


def re_execute(
    batch: "Batch[object]",
    stages: Sequence[tuple[str, AnyStage]],
    *,
    recorded: Mapping[str, object] | None = None,
    with_models: bool = False,
) -> ReExecution:
    """Take a batch of one document through stages. `recorded` is the document as the run has written it somewhere."""
    done = ReExecution(final=[Followed(batch)])
    for name, stage in stages:
        if isinstance(stage, FileWriter):
            _tell_written(done, name)
            return done
        # In a plan, what writes partitions stands for an exchange.
        if stage.is_exchange or stage.searches or isinstance(stage, WritePartitions):
            done.incomplete = f"{name} brings all documents together; what follows depends on the others"
            done.passages.append(Passage(name, "not run", note=done.incomplete))
            return done
        if _loads_something(stage) and not with_models:
            _take_recorded(done, name, stage, recorded or {})
        else:
            _run_stage(done, name, stage)
        if not done.final:
            return done
    return done


def _tell_written(done: ReExecution, name: str) -> None:
    for each in done.final:
        if each.gone is None:
            done.passages.append(Passage(name, "kept", each.label, note="written"))


def _loads_something(stage: AnyStage) -> bool:
    """Whether running it takes a model, a server or a file that only its set-up knows of."""
    if isinstance(stage, JUDGING):
        kinds = [type(judge) for judge in stage._filter_objects()]
        return any(
            kind.load_model is not DocumentFilter.load_model or kind.load_tokenizer is not DocumentFilter.load_tokenizer
            for kind in kinds
        )
    return type(stage).setup is not ProcessingStage.setup or stage.wants_node_setup()


def _take_recorded(done: ReExecution, name: str, stage: AnyStage, recorded: Mapping[str, object]) -> None:
    """Put in what the stage added in the run, if the run has kept it."""
    wanted = stage.outputs()[1]
    known = {column: recorded[column] for column in wanted if column in recorded}
    for each in done.final:
        if isinstance(each.batch, DocumentBatch) and each.batch.num_items == ONE_ROW:
            for column, value in known.items():
                each.batch = each.batch.with_column(column, pa.array([value]))
        how = "it has a set-up (a model, a server, an index); --with-models runs it"
        note = f"not run again: {how}" + ("; these values are what the run has written" if known else "")
        done.passages.append(Passage(name, "not run", each.label, note=note, columns=known))
    if len(known) < len(wanted) or not wanted:
        done.incomplete = f"{name} was not run again"


def _run_stage(done: ReExecution, name: str, stage: AnyStage) -> None:
    call = _Call(name, stage)
    following: list[Followed] = []
    for each in done.final:
        first, second = call.pass_on(each), call.pass_on(each)
        if _as_told(first) != _as_told(second):
            done.unstable.append(f"{name}: run twice on the same document it gives two results: not deterministic")
        passage, left = first
        done.passages.append(passage)
        if passage.outcome == "quarantined" and not passage.already_gone:
            done.failed = done.failed or name
        following += left
    call.close()
    if len(following) > FOLLOWED:
        note = f"{len(following):,} documents; the first {FOLLOWED} are followed"
        done.passages.append(Passage(name, "split", note=note))
        following = following[:FOLLOWED]
        done.incomplete = done.incomplete or f"{name} makes more documents than are followed"
    done.final = following


def _as_told(result: tuple[Passage, list[Followed]]) -> object:
    passage, left = result
    checks = [(c.rule, repr(c.value), c.keeps) for c in passage.checks]
    return passage.outcome, passage.reason, checks, [(e.gone, _shown(e.batch)) for e in left]


def _shown(batch: "Batch[object]") -> list[str]:
    return [batch.item(row).text for row in range(batch.num_items)]


class _Call:
    """One stage, in the same loop as in a worker: what it raises, drops and returns is understood as in a run."""

    def __init__(self, name: str, stage: AnyStage) -> None:
        self._name = name
        self._stage = stage
        self._asked = _AsksEveryRule(stage) if isinstance(stage, JUDGING) else None
        self._runners = [_runner(name, each) for each in (stage, self._asked) if each is not None]
        self._failed = self._runners[0].setup(WorkerMetadata())

    def close(self) -> None:
        for runner in self._runners:
            runner.teardown()

    def pass_on(self, each: Followed) -> tuple[Passage, list[Followed]]:
        """What the stage makes of a document, and what goes on."""
        if self._failed:
            why = self._failed.strip().rpartition("\n")[2]
            return self._passage(each, "not run", note=f"its set-up failed: {why}"), [each]
        made, reason = _outcome(self._runners[0], each.batch)
        checks: tuple[Checked, ...] = ()
        asked: Batch[object] = each.batch
        if self._asked is not None:
            answers, _ = _outcome(self._runners[1], each.batch)
            checks, asked = tuple(self._asked.checks), answers[0] if answers else each.batch
        if made is None:
            return self._passage(each, "quarantined", reason, checks=checks), []
        rows = [row for output in made for row in _rows_of(output)]
        if not rows:
            gone = each.gone or (self._name, reason)
            return self._passage(each, "dropped", reason, checks=checks), [Followed(asked, each.label, gone)]
        if len(rows) > 1:
            labels = [f"{each.label}.{n}" if each.label else str(n) for n in range(len(rows))]
            note = f"{len(rows)} documents in its place"
            left = [Followed(row, label, each.gone) for row, label in zip(rows, labels, strict=True)]
            return self._passage(each, "split", note=note), left
        changes, columns = _differences(each.batch, rows[0])
        passage = self._passage(each, "kept", checks=checks, changes=changes, columns=columns)
        return passage, [Followed(rows[0], each.label, each.gone)]

    def _passage(
        self,
        each: Followed,
        outcome: str,
        reason: str = "",
        *,
        note: str = "",
        checks: Sequence[Checked] = (),
        changes: Sequence[Change] = (),
        columns: Mapping[str, object] | None = None,
    ) -> Passage:
        gone = each.gone is not None
        return Passage(
            self._name, outcome, each.label, reason, note, gone, tuple(checks), tuple(changes), dict(columns or {})
        )


def _runner(name: str, stage: AnyStage) -> GroupRunner:
    group = Group(0, (stage,), (name,), 0, stage.resources, 1, None, None)
    return GroupRunner(group, last=False)


def _outcome(runner: GroupRunner, batch: "Batch[object]") -> "tuple[list[Batch[object]] | None, str]":
    """What a stage returns, or None if it failed; and why a document did not come through."""
    streamed: list[AnyTask] = []
    given = batch.take([0])
    given.inherit(batch)
    job = Job(batch.task_id, cast("AnyTask", given))
    [result] = runner.run([job], lambda _, __, task: streamed.append(task))
    if isinstance(result, JobFailure):
        return None, result.error.strip()
    [counts] = result.counts
    if counts.quarantined or counts.lost_parts:
        return None, ", ".join(counts.errors)
    made = [task for task in (*streamed, *(task for _, task in result.outputs)) if isinstance(task, Batch)]
    return made, ", ".join(counts.dropped) or "returned nothing"


def _rows_of(batch: "Batch[object]") -> "list[Batch[object]]":
    rows = []
    for row in range(batch.num_items):
        one = batch.take([row]) if batch.num_items > 1 else batch
        one.task_id = batch.task_id
        rows.append(one)
    return rows


# Stages that judge: every check is asked, whatever the ones before it said.


class _AsksEveryRule(ProcessingStage[DocumentBatch, DocumentBatch]):
    """The steps of a stage that judges, none of which drops anything; `checks` is what each said."""

    name = "asks_every_rule"

    def __init__(self, stage: AnyStage) -> None:
        self._steps: list[Step] = stage.steps()  # type: ignore[attr-defined]  # one of JUDGING
        self.checks: list[Checked] = []

    def process(self, task: DocumentBatch) -> DocumentBatch:
        self.checks = []
        measures = [step.measure for step in self._steps if isinstance(step, Check)]
        planned = plan_passes(statistic for measure in measures for statistic in measure.statistics())
        sieve = Sieve(task, Instruments(planned))
        for step in self._steps:
            if not isinstance(step, Check):
                sieve.rewrite(step.rules, step.reads)
                continue
            values = _values(step, sieve)
            if step.decision is not None:
                self.checks.append(_checked(step.decision, values))
            if step.adds is not None:
                judge = step.measure.judge if isinstance(step.measure, ScoreOfText) else None
                sieve.add(score_parts(judge, step.adds, to_arrow(values)))
        return sieve.result()


def _checked(decision: Decision, values: Values) -> Checked:
    value = to_arrow(values)[0].as_py()
    kept = bool(decision.keeps(values)[0])
    return Checked(decision.reason, value, decision.describe(), _distance(decision, value), kept)


def _values(step: Check, sieve: Sieve) -> Values:
    if not isinstance(step.measure, MeasureOfSet):
        return step.measure.values(sieve, step.reads)
    # A set stops measuring at the first rule that is broken; the definition for one text has every measure.
    text = sieve.texts_for_rules(step.reads).text(0)
    return np.array([step.measure.rules.measure_document(text)[step.measure.name]], np.float64)


def _distance(decision: object, value: object) -> float | None:
    bounds, invert = None, False
    if isinstance(decision, KeptByRule):
        bounds = decision.rule.bounds
    elif isinstance(decision, KeptByFilter) and isinstance(decision.judge, DocumentFilter):
        bounds, invert = Bounds(*decision.judge.bounds()), decision.invert
    if bounds is None or bounds.is_open or not isinstance(value, int | float) or math.isnan(value):
        return None
    sides = [value - bounds.low] if bounds.low is not None else []
    sides += [bounds.high - value] if bounds.high is not None else []
    return -min(sides) if invert else min(sides)


def _differences(before: "Batch[object]", after: "Batch[object]") -> tuple[list[Change], dict[str, object]]:
    if not isinstance(before, DocumentBatch) or not isinstance(after, DocumentBatch):
        return [], {}
    changes: list[Change] = []
    columns: dict[str, object] = {}
    old = document_of(before)
    for name, value in document_of(after).items():
        if name not in old:
            columns[name] = value
        elif repr(value) != repr(old[name]):  # what is not a number differs from itself
            if isinstance(value, str) and isinstance(old[name], str):
                changes += changes_between(name, cast("str", old[name]), value)
            else:
                columns[name] = value
    return changes, columns


def document_of(batch: DocumentBatch) -> dict[str, object]:
    """The one document of a batch, as plain values."""
    return cast("dict[str, object]", batch.slice(0, 1).to_pyarrow().to_pylist()[0])


def read_partition(task: AnyTask, stages: Sequence[AnyStage]) -> "Iterator[tuple[Batch[object], int]]":
    """Yield the batches a source partition is read as, and how many stages that took."""
    yield from _descend(task, stages, 0)


def _descend(task: AnyTask, stages: Sequence[AnyStage], position: int) -> "Iterator[tuple[Batch[object], int]]":
    if isinstance(task, Batch):
        yield task, position
    elif position < len(stages):
        made = stages[position].process(task)
        if made is None:
            return
        is_one = isinstance(made, Task)
        for number, output in enumerate([made] if is_one else made):
            child = cast("AnyTask", output)
            child.settle()
            child = child if child is task else child.descended_from(task)
            child.task_id = task.task_id if is_one else f"{task.task_id}.{number:04d}"
            yield from _descend(child, stages, position + 1)
