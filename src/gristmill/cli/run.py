"""`gristmill run`: build a recipe's pipeline, run it with live progress, say in words what happened."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import typer

from gristmill.cli.answer import answer
from gristmill.cli.dashboard import dashboard_beside
from gristmill.cli.log_format import LogFormat, log_format
from gristmill.cli.metrics_options import shown, with_metrics
from gristmill.cli.options import (
    AllowModules,
    AsJson,
    Dashboard,
    Debug,
    ExecutorName,
    Fresh,
    IndexIds,
    Inputs,
    MaxQuarantined,
    MemoryLimit,
    Observe,
    Output,
    Quiet,
    RecipeArgument,
    Rejects,
    RetryQuarantined,
    RunDir,
    Sample,
    Settings,
    ShardOf,
    Shared,
    SlicedBy,
    Workers,
)
from gristmill.errors import ConfigError, InputsChanged, TooManyQuarantined
from gristmill.storage.file_system import disk_path

if TYPE_CHECKING:
    from gristmill.config.shard import Shard
    from gristmill.engine.breaker import QuarantineLimit
    from gristmill.metrics.metrics_options import MetricsOptions
    from gristmill.metrics.progress import Progress
    from gristmill.pipeline import Pipeline
    from gristmill.runs.books import RunResult
    from gristmill.stages.context import Level, Observation


@with_metrics
def run(
    recipe: RecipeArgument,
    inputs: Inputs = None,
    output: Output = None,
    settings: Settings = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    executor: ExecutorName = None,
    allow_module: AllowModules = None,
    sample: Sample = None,
    shard: ShardOf = None,
    rejects: Rejects = None,
    run_dir: RunDir = None,
    fresh: Fresh = False,
    retry_quarantined: RetryQuarantined = False,
    max_quarantined: MaxQuarantined = None,
    index_ids: IndexIds = False,
    shared: Shared = False,
    dashboard: Dashboard = None,
    observe: Observe = "full",
    slice_by: SlicedBy = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    log: LogFormat = None,
    debug: Debug = False,
    *,
    metrics: "MetricsOptions",
) -> None:
    """Run a recipe. The same command again continues a run that was stopped."""
    from gristmill.config.shipped import find_recipe

    found = find_recipe(recipe)  # first, so that a misspelt name is reported before anything heavy is loaded
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.cli.recipe_values import recipe_values

    part, output, directory = _parted(shard, output, sample, run_dir)
    values = recipe_values(inputs or [], output, settings or [])
    own = allow_module or []
    where = choose_executor(found, values, name=executor, workers=workers, memory_limit=memory_limit, allow_modules=own)
    pipeline = _part_of(found.build(values, allow_modules=own), directory, sample=sample, shard=part, fresh=fresh)
    with (
        log_format(log),
        dashboard_beside(directory, dashboard),
        shown(metrics, where, quiet=quiet) as (progress, observer),
        _told_if_limited(progress, quiet=quiet),
    ):
        result = pipeline.run(
            executor=where,
            checkpoint_path=directory,
            rejects_path=rejects,
            max_quarantined=parse_limit(max_quarantined),
            fresh=fresh or sample is not None,  # a trial: yesterday's must not be continued with today's thresholds
            retry_quarantined=retry_quarantined,
            shared=shared,
            observe=observation_of(observe, slice_by),
            observer=observer,
            quiet=True,  # this command says everything itself
        )
        _index(result.run_dir, wanted=index_ids)
        _end(result, progress, as_json=as_json, quiet=quiet)


def _parted(
    shard: str | None, output: str | None, sample: int | None, run_dir: str | None
) -> "tuple[Shard | None, str | None, str | None]":
    """The part of the input that was asked for, where its output goes, and its run directory."""
    part = None if shard is None else _parse_shard(shard, output, sample, run_dir)
    output = output if part is None else part.output(str(output))
    return part, output, run_dir or default_run_dir(output)


def observation_of(level: str, columns: list[str] | None) -> "Observation":
    """What is to be recorded about documents."""
    from gristmill.stages.context import Observation

    return Observation(cast("Level", level), None if columns is None else tuple(columns))


@contextlib.contextmanager
def _told_if_limited(progress: "Progress", *, quiet: bool) -> Iterator[None]:
    """Say what came of a run that a limit stopped; the error itself is reported where all errors arrive."""
    try:
        yield
    except (TooManyQuarantined, InputsChanged) as error:
        _tell(cast("RunResult", error.result), progress, as_json=False, quiet=quiet)
        raise


def _end(result: "RunResult", progress: "Progress", *, as_json: bool, quiet: bool) -> None:
    _tell(result, progress, as_json=as_json, quiet=quiet)
    if not result.balanced:
        raise typer.Exit(1)


def _index(run_dir: str | None, *, wanted: bool) -> None:
    if wanted and run_dir is not None:
        from gristmill.pipeline.id_index import index_ids

        index_ids(disk_path(run_dir, who="--index-ids: the run directory"))


def _part_of(
    pipeline: "Pipeline", directory: str | None, *, sample: int | None, shard: "Shard | None", fresh: bool
) -> "Pipeline":
    """The pipeline on all of its input, or on the part of it that was asked for."""
    if sample is not None:
        from gristmill.config.sample import check_holds_no_full_run, first_documents

        pipeline = first_documents(pipeline, sample)
        if directory is not None and not fresh:
            check_holds_no_full_run(directory)
    if shard is not None:
        pipeline, record = shard.take(pipeline)
        shard.write_down(str(directory), record)
    return pipeline


def _parse_shard(text: str, output: str | None, sample: int | None, run_dir: str | None) -> "Shard":
    from gristmill.config.shard import Shard

    if output is None or sample is not None or run_dir is not None:
        raise ConfigError(
            "--shard: expected --output, and neither --sample nor --run-dir: a shard has its own directory"
        )
    return Shard.parse(text)


def default_run_dir(output: str | None) -> str | None:
    """Return where the ledger goes: with the output, so that the two are moved and removed together."""
    return None if output is None else f"{output.rstrip('/')}/.gristmill"


def parse_limit(text: str | None) -> "QuarantineLimit":
    """Return a limit on failed documents: a number, or a share of those read.

    >>> [str(parse_limit(text)) for text in ("100", "0.5", "1%")]
    ['100 documents', '50 %', '1 %']
    """
    from gristmill.engine.breaker import DEFAULT_LIMIT, QuarantineLimit

    if text is None:
        return DEFAULT_LIMIT
    try:
        if text.isdecimal():
            return QuarantineLimit(int(text))
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise ConfigError(
            f"--max-quarantined: expected a number of documents (100) or a share (0.01 or 1%); got {text!r}"
        )
    return QuarantineLimit(share)


def _tell(result: "RunResult", progress: "Progress", *, as_json: bool, quiet: bool) -> None:
    from gristmill.metrics.screens import say
    from gristmill.runs.summary import summarise

    progress.close()
    if not quiet:
        heard = set(progress.messages)
        news = [message for message in result.messages if message not in heard]
        say("\n".join([*news, "", summarise(result, command_line=True)]))
    if as_json:
        answer(result.to_json())
