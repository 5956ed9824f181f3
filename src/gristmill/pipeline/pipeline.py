"""`Pipeline`: a name and a list of stages. Running it never changes it."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec import structs

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.engine.breaker import DEFAULT_LIMIT, QuarantineLimit
from gristmill.engine.plan import AnyStage, AnyTask, Plan
from gristmill.errors import ConfigError, GristmillError
from gristmill.pipeline.compile import check_is_stage, check_no_secrets, compile_chain, decompose, stage_config
from gristmill.runs.books import RunResult
from gristmill.runs.listing import earlier_listing
from gristmill.runs.user import Observer, RunOptions, watched
from gristmill.stages.base import CompositeStage, ProcessingStage, columns_read
from gristmill.stages.context import Level, Observation
from gristmill.stages.io.partitions import KeepsListing
from gristmill.tasks import EmptyTask

if TYPE_CHECKING:
    from gristmill.metrics.metrics_options import MetricsOptions
    from gristmill.metrics.progress import Progress
    from gristmill.metrics.snapshot import RunSnapshot
    from gristmill.pipeline.explanation import Explanation
    from gristmill.runs.searches import RunInside

# `Watching`: what a call of `Pipeline.run`, or of a workflow, shows to its caller.
#
# Progress in a terminal, a notebook or a log; warnings at once; the summary at the end: what the command line shows.
# With an observer of the caller's own there is no display, but warnings and summary stay. `quiet` leaves out all of it.
# All of it goes to standard error: standard output is the program's.


class Watching:
    """One call. Give `observer` to the run, and `tell` what came of it."""

    def __init__(self, name: str, executor: BaseExecutor, *, quiet: bool, observer: Observer | None) -> None:
        self._name = name
        self._executor = executor
        self._quiet = quiet
        self._instead = observer
        self._progress: Progress | None = None
        self.observer: Observer | None = observer if quiet else self

    def __enter__(self) -> "Watching":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.close()
        result = getattr(error, "result", None)  # a run that stopped at a limit has books too
        if isinstance(result, RunResult):
            self.tell(result)

    def tell(self, result: object) -> None:
        """Say what has not been said yet, and the summary: what `print` would show of the result."""
        if self._quiet:
            return
        progress = self._made()
        progress.close()
        messages, heard = result.messages if isinstance(result, RunResult) else [], set(progress.messages)
        news = [message for message in messages if message not in heard]
        progress.say("\n".join([*news, f"{self._name}:", str(result)]))

    def __call__(self, snapshot: "RunSnapshot") -> None:
        """Show a snapshot."""
        self._made()(snapshot)

    @property
    def snapshot_s(self) -> float:
        """How often it wants a snapshot."""
        return self._made().snapshot_s

    def _made(self) -> "Progress":
        """The display, made when there is something to show: until then the workers are more urgent."""
        if self._progress is None:
            from gristmill.metrics.progress import Progress
            from gristmill.metrics.screens import IN_A_PROGRAM

            every = self._executor.progress_interval
            pace = structs.replace(IN_A_PROGRAM, line_s=every, first_line_s=min(every, IN_A_PROGRAM.first_line_s))
            self._progress = Progress(pace=pace, shows=self._executor.show_progress, instead=self._instead)
        return self._progress


@contextlib.contextmanager
def _exported(
    options: "MetricsOptions | None", executor: BaseExecutor, observer: Observer | None
) -> Iterator[Observer | None]:
    """The observer, or one that tells Prometheus too."""
    if not options:
        yield observer
        return
    from gristmill.metrics.exporter import Exporter

    with Exporter(options, executor=type(executor).__name__, then=observer) as exporter:
        yield exporter


class Pipeline:
    """A line of stages that data flows through.

    >>> pipeline = Pipeline("curate").add_stage(JsonlReader("in/")).add_stage(JsonlWriter("out/"))
    >>> result = pipeline.run()
    """

    def __init__(
        self,
        name: str,
        description: str | None = None,
        stages: Sequence[AnyStage] | None = None,
        config: dict[str, object] | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.stages: list[AnyStage] = []
        self.config = dict(config or {})
        self.recipe = ""  # the YAML it was built from, if it was; kept in the directory of its runs
        for stage in stages or ():
            self.add_stage(stage)

    def add_stage(self, stage: AnyStage) -> "Pipeline":
        """Append a stage; returns the pipeline, so that calls can be chained."""
        check_is_stage(self.name, stage)
        self.stages.append(stage)
        self.recipe = ""
        return self

    def build(self) -> None:
        """Check that the stages fit together, without looking at any input. `plan` and `run` do it anyway."""
        decompose(self.stages)

    def plan(self, executor: BaseExecutor | None = None, initial_tasks: Sequence[AnyTask] | None = None) -> Plan:
        """Return what `run` would run. Inputs are listed, nothing is started, nothing is written."""
        return self._plan(executor or default_executor(), initial_tasks)

    def _plan(
        self, executor: BaseExecutor, initial_tasks: Sequence[AnyTask] | None, continued: RunOptions | None = None
    ) -> Plan:
        """The plan of a run. One that may be `continued` does not list again what was listed when it began."""
        if isinstance(initial_tasks, list):  # in scripts for earlier versions of NeMo Curator `EmptyTask` is an object
            initial_tasks = [EmptyTask() if task is EmptyTask else task for task in initial_tasks]
        with watched(f"planning {self.name!r} has taken", executor.watchdog_s):
            stages = prepare(self.name, decompose(self.stages), executor.has_gpu)
            listing = ""
            if initial_tasks is None and stages and isinstance(lister := stages[0].with_(), KeepsListing):
                listing = stage_config(stages[0])
                found = continued and earlier_listing(stages, continued.checkpoint_path, listing)
                if found:
                    lister.use_listing(found)
                    stages = [lister, *stages[1:]]
            plan = compile_chain(self.name, stages, initial_tasks)
            plan = structs.replace(plan, listing=listing) if listing else plan
            for segment in plan.segments:
                executor.check(segment)
        return plan

    def run(
        self,
        executor: BaseExecutor | None = None,
        initial_tasks: Sequence[AnyTask] | None = None,
        checkpoint_path: str | Path | None = None,
        *,
        rejects_path: str | Path | None = None,
        max_quarantined: int | float | QuarantineLimit | None = DEFAULT_LIMIT,
        fresh: bool = False,
        retry_quarantined: bool = False,
        observer: Observer | None = None,
        quiet: bool = False,
        shared: bool = False,
        metrics: "MetricsOptions | None" = None,
        observe: Level | Observation = "full",
    ) -> RunResult:
        """Run the pipeline and return its final tasks with the books of the run.

        Without an executor it runs on Ray if RAY_ADDRESS is set or Ray is initialised, else on this machine.

        A pipeline that ends in a writer has a run directory: `checkpoint_path`, or `.gristmill` in the output. The
        same call again continues a run that was stopped or killed, and changes nothing if it is finished. With another
        threshold, function or input it is refused; `fresh` starts over and removes what the earlier run has written.

        `rejects_path` keeps the documents filters drop, with stage, reason, value and threshold. More than
        `max_quarantined` failed documents (a number, or a share of those read) stop the run. By default that
        is a tenth, once 1,000 documents have been read; None lets any number fail. A stage that no document passes
        stops the run in any case.
        `retry_quarantined` takes what is in quarantine through the pipeline again, once the cause is fixed: source
        partitions with such documents are done again and replace what they gave before. The code of stages may have
        changed for that, their parameters may not.
        Progress, warnings and the summary go to standard error. An `observer` gets the snapshots and replaces the
        display of progress; `quiet` leaves out everything. Only the user who runs it may read the run directory, whose
        quarantine holds documents; `shared` leaves that to the umask, as with outputs. `metrics` says how the run
        tells Prometheus about itself. `observe="counts"` records no text of documents, "off" nothing but the books.
        """
        executor = executor or default_executor()
        for name, path in (("checkpoint_path", checkpoint_path), ("rejects_path", rejects_path)):
            check_no_secrets(str(path or ""), who=name)
        with (
            Watching(self.name, executor, quiet=quiet, observer=observer) as watching,
            _exported(metrics, executor, watching.observer) as observed,
        ):
            options = RunOptions(
                checkpoint_path=None if checkpoint_path is None else str(checkpoint_path),
                rejects_path=None if rejects_path is None else str(rejects_path),
                limit=_limit(max_quarantined),
                fresh=fresh,
                retry_quarantined=retry_quarantined,
                observer=observed,
                shared=shared,
                recipe=self.recipe,
                observation=Observation.of(observe),
            )
            result = self._execute(executor, initial_tasks, options)
            watching.tell(result)
        return result

    def _execute(
        self, executor: BaseExecutor, initial_tasks: Sequence[AnyTask] | None, options: RunOptions
    ) -> RunResult:
        """Plan and run. What takes time to start is kept from one segment, or one step of a search, to the next.

        A search is seen before there is a plan: then it starts while the plan is made.
        """
        searching = [type(stage).__module__ for stage in self.stages if stage.searches]
        with executor.kept_ready(searching) if searching else contextlib.nullcontext(executor) as early:
            plan = self._plan(early, initial_tasks, None if options.fresh else options)
            with contextlib.nullcontext(early) if plan.is_one_go else early.kept_ready() as ready:
                return ready.execute(plan, replace(options, run_inside=run_inside(ready, options)))

    def explain(
        self, run_dir: str | Path, document_id: str, *, source: str | None = None, with_models: bool = False
    ) -> "Explanation":
        """Tell what a run of this pipeline did to a document: each rule's value and distance, what was changed, why.

        The document is found in the input by its id, or by `source` (FILE:LINE), and taken through the stages again;
        `with_models` runs those with a set-up too. Print the result, or ask its `to_json`.
        """
        from gristmill.pipeline.explain import explain_document

        return explain_document(self, run_dir, document_id, source=source, with_models=with_models)

    def describe(self) -> str:
        """The stages as lines for people to read: what each needs, reads and adds."""
        lines = [f"Pipeline: {self.name}"]
        if self.description:
            lines.append(f"Description: {self.description}")
        for number, stage in enumerate(self.stages, 1):
            lines.append(f"{number}. {stage.stage_name()} ({type(stage).__name__})")
            if isinstance(stage, CompositeStage):
                lines += [f"     {inner.stage_name()}" for inner in decompose([stage])]
                continue
            reads, adds = columns_read(stage), stage.outputs()[1]
            lines.append(f"     needs {stage.resources.cpus:g} cpu, {stage.resources.gpus:g} gpu")
            lines += [f"     reads {', '.join(reads)}"] if reads else []
            lines += [f"     adds {', '.join(adds)}"] if adds else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The plan, for notebooks; the stages, if there is no plan because something is wrong or missing."""
        try:
            return self.plan()._repr_html_()
        except GristmillError as error:
            said = f"{self.describe()}\n\n{type(error).__name__}: {error}"
        import html  # notebooks only; it holds all the names of characters

        return f"<pre>{html.escape(said)}</pre>"

    def __repr__(self) -> str:
        return f"Pipeline(name={self.name!r}, stages={[stage.stage_name() for stage in self.stages]})"


def run_stages(
    executor: BaseExecutor, stages: Sequence[AnyStage], initial_tasks: Sequence[AnyTask] | None = None
) -> RunResult:
    """Run stages as a pipeline without a name: what `executor.execute(stages, initial_tasks)` means."""
    return Pipeline("stages", stages=stages).run(executor, initial_tasks)


def run_inside(executor: BaseExecutor, options: RunOptions) -> "RunInside":
    """Return what runs the pipelines of a search: on the same executor, with the limits of the run it is for."""

    def run(
        name: str,
        stages: Sequence[AnyStage],
        tasks: Sequence[AnyTask],
        directory: Path | None,
        *,
        observer: Observer | None,
        fresh: bool = False,
    ) -> RunResult:
        return Pipeline(name, stages=stages).run(
            executor,
            tasks,
            directory,
            max_quarantined=options.limit,
            fresh=fresh,
            observer=observer,
            quiet=True,
            shared=options.shared,
            observe="off",
        )

    return run


def _limit(given: int | float | QuarantineLimit | None) -> QuarantineLimit:
    if isinstance(given, QuarantineLimit):
        return given
    if given is None or (isinstance(given, int) and given >= 0) or (isinstance(given, float) and 0 < given <= 1):
        return QuarantineLimit(given)
    raise ConfigError(f"max_quarantined: expected a number of documents ≥ 0 or a share in (0, 1]; got {given!r}")


def prepare(pipeline: str, stages: Sequence[AnyStage], has_gpu: Callable[[], bool]) -> list[AnyStage]:
    """Return the stages as they will run where the plan is made for; those given stay as they are.

    Work that an earlier stage does already is done once. What a stage needs is looked for now, so that a missing model
    costs a second and not the start of a cluster. A stage that can choose is told whether there is a GPU: `has_gpu` is
    asked only then.
    """
    ready: list[AnyStage] = []
    for stage in stages:
        check_is_stage(pipeline, stage)
        instead = stage.done_by(ready)
        ready = [*ready, stage] if instead is None else list(instead)
    # Those that look for something note what they find, which is about this plan: only they are copied. A reader knows
    # the very stage that lists its files, and would list them again for another.
    looking = [type(stage).check_ready is not ProcessingStage.check_ready for stage in ready]
    ready = [stage.with_() if looks else stage for stage, looks in zip(ready, looking, strict=True)]
    for stage in ready:
        stage.check_ready()
    choosing = [type(stage).resources_where is not ProcessingStage.resources_where for stage in ready]
    if not any(choosing):
        return ready
    there = has_gpu()
    return [
        stage.with_(resources=stage.resources_where(has_gpu=there)) if chooses else stage
        for stage, chooses in zip(ready, choosing, strict=True)
    ]
