"""`MixWorkflow`: documents of several sources, each as often as its weight says, and a table of wanted against got.

Every source is counted, then mixed. Counting comes first because a target depends on what there is, and because a
misspelt level should be found before anything is written. It reads only the columns that decide. Both are pipelines
that the same call continues, and a document's copies depend on its id and the seed alone.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, errors_of
from gristmill.runs.books import RunResult
from gristmill.runs.user import Observer
from gristmill.stages.io.files import FileReader
from gristmill.stages.mixing.mix_documents import DOCUMENTS, TOKENS, CountGroups, MixDocuments, value_column
from gristmill.stages.text.io.formats import READERS, WRITERS
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.storage.atomic_write import write_file
from gristmill.storage.file_system import disk_path
from gristmill.tasks import DocumentBatch
from gristmill.workflows.mixing.mixture import Group, Mixture, too_often, weighted

if TYPE_CHECKING:
    from gristmill.engine.plan import AnyStage

MAX_GROUPS = 10_000  # of one source: beyond that a column is not one of levels or labels
SHOWN = 40  # groups of a source with a line of their own; a stage may count by a hundred names
MAX_LABEL = 60  # characters
COUNTING = ("count", "counts")  # the run directory of counting, and what it writes


@dataclass(frozen=True)
class Line:
    """One line of the table: some groups of one source, and what became of them."""

    label: str
    weight: float | None  # None where several groups are in one line
    epochs: float | None
    there: int  # documents
    wanted: float
    wanted_tokens: float
    got: int = 0
    got_tokens: int = 0


@dataclass
class MixWorkflow(WorkflowBase):
    """Write the documents of each source below `output/mixed/<source>`, and `report.json`.

    With `dry_run` nothing is written but the counts: the table says what would be wanted.
    """

    mixture: Mixture
    dry_run: bool = False
    fresh: bool = False

    def run(
        self, executor: BaseExecutor | None = None, *, observer: Observer | None = None, quiet: bool = False
    ) -> WorkflowRunResult:
        """Count, then mix. The same call made again continues."""
        executor = executor or default_executor()
        with (
            Watching("mix", executor, quiet=quiet, observer=observer) as watching,
            executor.kept_ready() as ready,
        ):
            result = self._run(ready, watching.observer)
            watching.tell(result)
        return result

    def _run(self, executor: BaseExecutor, observer: Observer | None) -> WorkflowRunResult:
        output = disk_path(self.mixture.output, who="mix: output")
        self._clear(output)
        job = _MixJob(self.mixture, output, executor, observer)
        for source in self.mixture.sources:
            job.check(source)
        groups = weighted(self.mixture, [group for source in self.mixture.sources for group in job.count(source)])
        of_source = {source: [group for group in groups if group.source == source] for source in self.mixture.sources}
        lines = {source: lines_of(own) for source, own in of_source.items()}
        done = {} if self.dry_run else job.mix_all(of_source)
        for source, result in done.items():
            lines[source] = [_with_got(line, source, result) for line in lines[source]]
        warnings = too_often(self.mixture, groups)
        return self._told(output, [line for own in lines.values() for line in own], warnings, list(done.values()))

    def _clear(self, output: Path) -> None:
        """Start over if that is wanted; else refuse an output that has documents of a source no longer listed."""
        if self.fresh:
            counts = [output / ".gristmill" / source / name for source in self.mixture.sources for name in COUNTING]
            for path in counts if self.dry_run else (output / ".gristmill", output / "mixed"):
                shutil.rmtree(path, ignore_errors=True)
        there = {path.name for path in (output / "mixed").glob("*")}
        if not self.dry_run and (strange := sorted(there - set(self.mixture.sources))):
            raise ConfigError(
                f"mix: expected {str(output / 'mixed')!r} to have documents of {list(self.mixture.sources)}; got "
                f"{strange} of an earlier mixture. Choose another output, or start over with fresh=True (--fresh)"
            )

    def _told(self, output: Path, lines: list[Line], warnings: list[str], done: list[RunResult]) -> WorkflowRunResult:
        names = ("read", "created", "written", "dropped_total", "quarantined")
        books = {name: sum(getattr(result, name) for result in done) for name in names}
        unit = DOCUMENTS if self.mixture.target is None else self.mixture.target.unit
        wanted, got = (sum(own) for own in zip(*(_in_unit(line, unit) for line in lines), strict=True))
        report = {
            "target": None if self.mixture.target is None else str(self.mixture.target),
            "unit": unit,
            "wanted": round(wanted),
            "got": None if self.dry_run else got,
            "groups": [vars(line) for line in lines],
            "warnings": warnings,
            **({} if self.dry_run else books),
        }
        summary = [table(lines, has_tokens=self.mixture.token_field is not None, has_got=not self.dry_run), ""]
        summary += [f"warning: {warning}" for warning in warnings]
        summary.append(
            f"wanted {wanted:,.0f} {unit}" + ("" if self.dry_run else f", got {got:,} ({_off(wanted, got)})")
        )
        if not self.dry_run:
            path = output / "report.json"
            write_file(str(path), [json.dumps(report, indent=1, ensure_ascii=False).encode() + b"\n"])
            summary += ["", f"output       {output / 'mixed'}", f"report       {path}"]
        return WorkflowRunResult("mix", {}, report, "\n".join(summary), errors_of(done))


@dataclass(frozen=True)
class _MixJob:
    """The pipelines of a mixture."""

    mixture: Mixture
    output: Path
    executor: BaseExecutor
    observer: Observer | None

    def check(self, source: str) -> None:
        """Refuse a source that is not there, or lacks a column; a reader told its columns takes them for granted."""
        _pipeline(f"check {source}", [self._reader(source), self._counting(source)]).plan(self.executor)

    def _counting(self, source: str) -> CountGroups:
        return CountGroups(self.mixture.columns(source), self.mixture.token_field, name=f"count_{source}")

    def count(self, source: str) -> Iterator[Group]:
        """Return the groups of a source."""
        stage, columns = self._counting(source), self.mixture.columns(source)
        counts = self._run_dir(source) / COUNTING[1]
        stages = [self._reader(source, stage.inputs()[1]), stage, ArrowWriter(str(counts))]
        done = self._run(_pipeline(f"count {source}", stages), self._run_dir(source) / COUNTING[0])
        names = [value_column(number) for number in range(len(columns))]
        totals: dict[tuple[str | None, ...], list[int]] = {}
        for row in _rows(done.output_files):
            values = tuple(None if row[name] is None else str(row[name]) for name in names)
            total = totals.setdefault(values, [0, 0])
            total[0] += int(str(row[DOCUMENTS]))
            total[1] += int(str(row[TOKENS]))
            if len(totals) > MAX_GROUPS:
                raise ConfigError(
                    f"mix: expected columns of levels or labels in weights of {source}; {columns} have more than "
                    f"{MAX_GROUPS:,} different values together"
                )
        for values, (documents, tokens) in sorted(totals.items(), key=lambda item: [own or "" for own in item[0]]):
            yield Group(source, values, documents, tokens)

    def mix_all(self, groups: Mapping[str, Sequence[Group]]) -> dict[str, RunResult]:
        """Write the documents of every source as often as is wanted; all are planned before the first is begun."""
        pipelines = {source: self._mixing(source, own) for source, own in groups.items()}
        for pipeline in pipelines.values():
            pipeline.plan(self.executor)
        return {source: self._run(pipeline, self._run_dir(source) / "mix") for source, pipeline in pipelines.items()}

    def _mixing(self, source: str, groups: Sequence[Group]) -> Pipeline:
        stage = MixDocuments(
            self.mixture.columns(source),
            [group.values for group in groups],
            [group.epochs for group in groups],
            labels_of(groups),
            self.mixture.seed,
            self.mixture.id_field,
            self.mixture.token_field,
            name=f"mix_{source}",
        )
        writer = WRITERS[self.mixture.sources[source].format](str(self.output / "mixed" / source))
        return _pipeline(f"mix {source}", [self._reader(source), stage, writer])

    def _run_dir(self, source: str) -> Path:
        return self.output / ".gristmill" / source

    def _reader(self, source: str, columns: Sequence[str] | None = None) -> FileReader[DocumentBatch]:
        given = self.mixture.sources[source]
        reader = READERS[given.format]
        path = given.path if isinstance(given.path, str) else list(given.path)
        return reader(path, **reader.options_for(list(columns) if columns else None))  # type: ignore[arg-type]

    def _run(self, pipeline: Pipeline, run_dir: Path) -> RunResult:
        return pipeline.run(self.executor, checkpoint_path=run_dir, observer=self.observer, quiet=True)


def _pipeline(name: str, stages: Sequence[object]) -> Pipeline:
    line: list[AnyStage] = list(stages)  # type: ignore[arg-type]  # stages are invariant in their tasks
    return Pipeline(name, stages=line)


def _rows(files: Iterable[str]) -> Iterator[dict[str, object]]:
    for path in files:
        with pa.OSFile(path) as file:
            yield from pa.ipc.open_file(file).read_all().to_pylist()


# The table


def labels_of(groups: Sequence[Group]) -> list[str]:
    """Return what each group of one source is called: the largest by their values, all others together."""
    labels = [group.label.partition(" ")[2] or "all" for group in groups[:SHOWN]]
    labels = [label if len(label) <= MAX_LABEL else f"group {number}" for number, label in enumerate(labels)]
    return labels + ["others"] * (len(groups) - len(labels))


def lines_of(groups: Sequence[Group]) -> list[Line]:
    """Return the lines of a source, without what was got."""
    lines: dict[str, Line] = {}
    for group, label in zip(groups, labels_of(groups), strict=True):
        own = Line(
            f"{group.source} {label}",
            group.weight,
            group.epochs,
            group.documents,
            group.epochs * group.documents,
            group.epochs * group.tokens,
        )
        before = lines.get(label)
        lines[label] = own if before is None else _joined(before, own)
    return list(lines.values())


def _joined(one: Line, other: Line) -> Line:
    return replace(
        one,
        weight=None,
        epochs=None,
        there=one.there + other.there,
        wanted=one.wanted + other.wanted,
        wanted_tokens=one.wanted_tokens + other.wanted_tokens,
    )


def _with_got(line: Line, source: str, result: RunResult) -> Line:
    counted = result.counts[f"mix_{source}"].counted
    label = line.label.partition(" ")[2]
    return replace(line, got=counted.get(f"{label} {DOCUMENTS}", 0), got_tokens=counted.get(f"{label} {TOKENS}", 0))


def _in_unit(line: Line, unit: str) -> tuple[float, int]:
    return (line.wanted, line.got) if unit == DOCUMENTS else (line.wanted_tokens, line.got_tokens)


def _off(wanted: float, got: float) -> str:
    return f"{(got - wanted) / wanted:+.2%}" if wanted else "+0.00%"


def table(lines: Sequence[Line], *, has_tokens: bool, has_got: bool) -> str:
    """Return the table of wanted against got."""
    heads = ["", "weight", "epochs", "documents", "wanted", "got", "off", "tokens wanted", "tokens got"]
    rows = [
        [
            line.label,
            "" if line.weight is None else f"{line.weight:g}",
            "" if line.epochs is None else f"{line.epochs:.3g}",
            f"{line.there:,}",
            f"{line.wanted:,.0f}",
            f"{line.got:,}",
            _off(line.wanted, line.got),
            f"{line.wanted_tokens:,.0f}",
            f"{line.got_tokens:,}",
        ]
        for line in lines
    ]
    left_out = {
        *(() if has_got else ("got", "off", "tokens got")),
        *(() if has_tokens else ("tokens wanted", "tokens got")),
    }
    kept = [place for place, head in enumerate(heads) if head not in left_out]
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in kept]
    return "\n".join(
        "  ".join(
            row[place].ljust(width) if not place else row[place].rjust(width)
            for place, width in zip(kept, widths, strict=True)
        ).rstrip()
        for row in [heads, *rows]
    )
