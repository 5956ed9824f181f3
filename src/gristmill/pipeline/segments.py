"""Segments: a pipeline with exchanges is a chain of plans, each of which begins when the one before is done.

An exchange becomes a stage that writes at the end of one segment and a stage that reads at the start of the next. The
engine knows nothing of it: a segment is a plan like any other, with a ledger of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gristmill.engine.plan import AnyStage, AnyTask, Plan
from gristmill.errors import ConfigError
from gristmill.pipeline.columns import check_columns
from gristmill.pipeline.compile import compile_plan, decompose, unique_names

if TYPE_CHECKING:
    from gristmill.stages.exchange.exchange import Exchange

NO_RUN = Path("RUN_DIR")  # stands for the run directory in plans that are only looked at


def compile_chain(
    name: str, stages: Sequence[AnyStage], initial_tasks: Sequence[AnyTask] | None, run_dir: Path = NO_RUN
) -> Plan:
    """Return the plan of a pipeline; if it has exchanges, `Plan.then` is the plan of what comes behind the first."""
    flat = decompose(stages)
    exchanges = [index for index, stage in enumerate(flat) if stage.is_exchange]
    if not exchanges:
        return compile_plan(name, flat, initial_tasks)
    if exchanges[0] == 0 and initial_tasks is None:
        raise ConfigError(
            f"pipeline {name!r}: expected a reader before {flat[0].stage_name()!r}; it is the first stage"
        )
    from gristmill.stages.exchange.read_partition import partition_tasks

    listed = flat[0].partitions() if initial_tasks is None else None
    check_columns(flat if listed is None else flat[1:])
    named = [stage.with_(name=unique) for stage, unique in zip(flat, unique_names(name, flat), strict=True)]
    size = sum(task.nbytes for task in (initial_tasks or listed or ()))
    plans = [compile_plan(name, _segment(named, 0, exchanges, run_dir, size), initial_tasks)]
    for number in range(1, len(exchanges) + 1):
        mark = cast("Exchange", named[exchanges[number - 1]])
        directory = f"{run_dir}/exchange-{number}"
        tasks = partition_tasks(directory, number, mark.partition_count(size), total_bytes=size)
        plans.append(compile_plan(name, _segment(named, number, exchanges, run_dir, size), tasks))  # type: ignore[arg-type]
    chained = plans[-1]
    for plan in reversed(plans[:-1]):
        chained = replace(plan, then=chained)
    return chained


def chain(plan: Plan) -> list[Plan]:
    """Return the segments of a plan, in order."""
    plans = [plan]
    while plans[-1].then is not None:
        plans.append(plans[-1].then)
    return plans


def _segment(
    stages: Sequence[AnyStage], number: int, exchanges: Sequence[int], run_dir: Path, input_bytes: int
) -> list[AnyStage]:
    """The stages of one segment, with the halves of the exchanges at its ends."""
    from gristmill.stages.exchange.read_partition import ReadPartition  # these need Arrow; most pipelines need neither
    from gristmill.stages.exchange.write_partitions import WritePartitions

    start = exchanges[number - 1] + 1 if number else 0
    last = number == len(exchanges)
    inner = list(stages[start : None if last else exchanges[number]])
    before: list[AnyStage] = []
    if number:
        before = [ReadPartition(name=f"{stages[exchanges[number - 1]].stage_name()}_read")]  # type: ignore[list-item]
    if last:
        return before + inner
    mark = cast("Exchange", stages[exchanges[number]])
    sink = WritePartitions(mark.keys, mark.partition_count(input_bytes), mark.seed, name=mark.stage_name())
    sink._directory = f"{run_dir}/exchange-{number + 1}"
    return [*before, *inner, sink.with_(resources=mark.resources)]  # type: ignore[list-item]
