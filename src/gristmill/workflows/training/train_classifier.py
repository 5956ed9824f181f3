"""`TrainClassifierWorkflow`: from two directories of documents to a model that says how sure it is, with a card.

    read          two pipelines: texts and hashes of both classes, in Arrow files
    train         on the documents that are not held out
    calibrate     on half of the held-out documents: log odds become probabilities
    report        on the other half: area under the curve, calibration error, thresholds, and 50 rows with scores

Everything is made in a directory beside the model's and renamed at the end: a model is there whole or not at all.
"""

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal, cast

import msgspec

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.errors import ConfigError, nearest
from gristmill.pipeline import Pipeline
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, errors_of
from gristmill.runs.books import RunResult
from gristmill.runs.sinks import Held, LockFile
from gristmill.runs.user import Observer
from gristmill.stages.text.io.formats import READERS, check_format
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.stages.text.quality.model_card import ModelCard, write_card, write_rows
from gristmill.storage.atomic_write import explained, force_names, machine_failures
from gristmill.storage.file_system import disk_path
from gristmill.workflows.training.examples import NO_TEXT, PARTS, Examples, TakeExamples
from gristmill.workflows.training.kinds import KINDS, Training
from gristmill.workflows.training.report import Origin, judge

CLASSES = ("positive", "negative")
FEW = 200  # documents to calibrate on: with these, the error in a tenth of the range is still about 0.1
LEFT = ("read", "texts", "between", "model")  # below the directory beside the model's; a killed training leaves them


@dataclass
class TrainClassifierWorkflow(WorkflowBase):
    """Train a classifier of `kind` that tells the documents of `positive` from those of `negative`.

    The share `holdout` is kept apart, by a hash of the text or, with `group_by`, of that column: documents of one
    source, say, which resemble each other more than they resemble documents to come. With one thread, the same
    documents and the same `seed` give the same files, byte for byte.
    """

    positive: str | Sequence[str]
    negative: str | Sequence[str]
    output: str
    kind: str = "fasttext"
    text_field: str = "text"
    input_filetype: str = "jsonl"
    _: KW_ONLY
    holdout: float = 0.2
    seed: int = 42
    group_by: str | None = None
    threads: int = 1
    embedder: str | None = None

    def __post_init__(self) -> None:
        who = type(self).__name__
        check_format(self.input_filetype, READERS, who=who, option="input_filetype")
        if self.kind not in KINDS:
            raise ConfigError(
                f"{who}: expected kind to be one of {list(KINDS)}; got {self.kind!r}{nearest(self.kind, KINDS)}"
            )
        if not 0 < self.holdout < 1:
            raise ConfigError(f"{who}: expected 0 < holdout < 1; got {self.holdout!r}")
        if self.threads < 1:
            raise ConfigError(f"{who}: expected threads ≥ 1; got {self.threads!r}")
        if self.group_by == self.text_field:
            raise ConfigError(f"{who}: expected group_by to be another column than the text; got {self.group_by!r}")
        KINDS[self.kind].check(self._training(Path()), who=who)

    def run(
        self, executor: BaseExecutor | None = None, *, observer: Observer | None = None, quiet: bool = False
    ) -> WorkflowRunResult:
        """Read, train, calibrate and judge; write the model directory."""
        executor = executor or default_executor()
        output = disk_path(self.output, who="output")
        if output.exists():
            raise ConfigError(
                f"train-classifier: expected nothing at {str(output)!r} yet; it exists. Remove it or name another"
            )
        scratch = output.parent / f".{output.name}.training"
        with Watching("train-classifier", executor, quiet=quiet, observer=observer) as watching:
            with machine_failures("train-classifier", scratch):
                result = self._run_in(scratch, output, executor, watching.observer)
            watching.tell(result)
        return result

    def _run_in(
        self, scratch: Path, output: Path, executor: BaseExecutor, observer: Observer | None
    ) -> WorkflowRunResult:
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            lock = LockFile(scratch / "lock")
        except Held as held:
            raise ConfigError(f"train-classifier: {str(output)!r} is being made by {held.holder}") from None
        try:
            for entry in LEFT:
                shutil.rmtree(scratch / entry, ignore_errors=True)
            read = {name: self._read(name, scratch, executor, observer) for name in CLASSES}
            card = self._make(scratch, read)
            with explained(output):
                (scratch / "model").rename(output)
                force_names(str(output.parent))
        finally:
            for entry in LEFT:
                shutil.rmtree(scratch / entry, ignore_errors=True)
            lock.release(remove=True)
            with contextlib.suppress(OSError):  # another training has begun there
                scratch.rmdir()
        metadata = {"model_path": str(output), "card": msgspec.to_builtins(card)}
        return WorkflowRunResult(
            "train-classifier", {**read}, metadata, in_words(card, output), errors_of(list(read.values()))
        )

    def _read(self, name: str, scratch: Path, executor: BaseExecutor, observer: Observer | None) -> RunResult:
        path = self.positive if name == "positive" else self.negative
        wanted = [self.text_field, *([] if self.group_by is None else [self.group_by])]
        kind = READERS[self.input_filetype]
        reader = kind(path if isinstance(path, str) else list(path), **kind.options_for(wanted))  # type: ignore[arg-type]
        self._check_columns(name, path, wanted)
        stages = [
            reader,
            TakeExamples(self.text_field, self.group_by, self.seed),
            *KINDS[self.kind].stages(self._training(scratch)),
            ArrowWriter(str(scratch / "texts" / name)),
        ]
        pipeline = Pipeline(f"read_{name}", stages=stages)  # type: ignore[arg-type]  # invariant
        done = pipeline.run(executor, checkpoint_path=scratch / "read" / name, observer=observer, quiet=True)
        if not done.written:
            raise ConfigError(
                f"train-classifier: expected documents with texts in {self.text_field!r} below --{name} {path}; got "
                f"{done.read:,} documents and none with a text"
            )
        return done

    def _check_columns(self, name: str, path: str | Sequence[str], wanted: Sequence[str]) -> None:
        """Refuse a column the first file does not have: a reader of JSON lines would give nulls."""
        reader = READERS[self.input_filetype](path if isinstance(path, str) else list(path))
        there = reader.decompose()[1].columns()
        for column in wanted:
            if there is not None and column not in there:
                raise ConfigError(
                    f"train-classifier: expected a column {column!r} in the documents of --{name}; "
                    f"they have {', '.join(map(repr, there))}{nearest(column, there)}"
                )

    def _make(self, scratch: Path, read: dict[str, RunResult]) -> ModelCard:
        """Train, calibrate, judge; write everything below `scratch/model`, the card last."""
        negative, positive = read["negative"].output_files, read["positive"].output_files
        examples = Examples(negative, positive, holdout=self.holdout, seed=self.seed)
        _check_parts(examples)
        directory = scratch / "model"
        directory.mkdir()
        (scratch / "between").mkdir()
        training = self._training(scratch / "between")
        model = KINDS[self.kind].train(examples, training)
        model.save(directory)
        origin = Origin(
            kind=cast("Literal['fasttext', 'linear']", self.kind),
            text_field=self.text_field,
            reproducible=self.threads == 1,
            settings={
                **KINDS[self.kind].settings(training),
                "holdout": self.holdout,
                "seed": self.seed,
                "group_by": self.group_by,
                "threads": self.threads,
            },
            paths={name: _shown(getattr(self, name)) for name in CLASSES},
            without_text={name: _dropped(read[name]) for name in CLASSES},
            quarantined={name: read[name].quarantined for name in CLASSES},
        )
        card, rows = judge(examples, model, origin, seed=self.seed)
        write_rows(directory, rows)
        card = card.with_files(directory)
        write_card(directory, card)
        return card

    def _training(self, scratch: Path) -> Training:
        return Training(scratch, self.seed, self.threads, self.embedder)


def _check_parts(examples: Examples) -> None:
    """Each part needs both classes: nothing can be learnt, calibrated or judged by one."""
    counts = examples.counts()
    for part in PARTS:
        for name, count in counts[part].items():
            if not count:
                raise ConfigError(
                    f"train-classifier: expected documents of both classes to train, calibrate and report on; got no "
                    f"{name} one to {part} on ({counts}). Give more documents, more groups or another holdout"
                )


def _dropped(result: RunResult) -> int:
    return sum(reasons.get(NO_TEXT, 0) for reasons in result.dropped.values())


def _shown(path: str | Sequence[str]) -> str:
    return path if isinstance(path, str) else ", ".join(path)


def in_words(card: ModelCard, output: Path) -> str:
    """What a user wants to know first."""
    counts = {name: sum(card.parts[part][name] for part in PARTS) for name in CLASSES}
    judged, error = sum(card.parts["report"].values()), card.calibration_error
    lines = [
        f"{counts['positive']:,} positive and {counts['negative']:,} negative documents, {judged:,} to report on",
        f"  area under the curve   {card.auc.value:.3f} [{card.auc.low:.3f}, {card.auc.high:.3f}]",
        f"  calibration error      {error.before:.3f} before, {error.after:.3f} after",
    ]
    for name, cut in card.thresholds.items():
        told = "no threshold reaches it"
        if cut is not None:
            told = f"min_score {cut.threshold:.3f} keeps {cut.kept:.1%}, precision {cut.precision:.3f}"
        lines.append(f"  {name:22} {told}")
    calibrated = sum(card.parts["calibration"].values())
    if calibrated < FEW:
        lines.append(f"  scores are rough: only {calibrated} documents to calibrate on")
    if card.in_both_classes:
        lines.append(f"  {card.in_both_classes:,} texts are in both classes")
    if not card.reproducible:
        lines.append("  made with several threads: training again gives another model")
    return "\n".join([*lines, "", f"model        {output}"])
