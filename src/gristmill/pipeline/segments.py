"""Segments: a pipeline with exchanges is a chain of plans, each of which begins when the one before is done.

An exchange becomes a stage that writes at the end of one segment and a stage that reads at the start of the next. The
engine knows nothing of it: a segment is a plan like any other, with a ledger of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from gristmill.engine.plan import AnyStage, AnyTask, Plan
from gristmill.errors import ConfigError
from gristmill.pipeline.columns import check_columns
from gristmill.pipeline.compile import (
    Sources,
    check_stages,
    compile_plan,
    decompose,
    take_sources,
    unique_names,
)
from gristmill.runs.places import NO_RUN, exchange_directory

if TYPE_CHECKING:
    from gristmill.stages.exchange.exchange import Exchange


def compile_chain(name: str, stages: Sequence[AnyStage], initial_tasks: Sequence[AnyTask] | None) -> Plan:
    """Return the plan of a pipeline; if it has exchanges, `Plan.then` is the plan of what comes behind the first.

    The input is listed, and looked into for its columns, once: what is checked here is what runs. Where rows meet is
    known only when the run has a directory: it puts that in.
    """
    flat = decompose(stages)
    check_stages(name, flat)
    if flat[0].is_exchange and initial_tasks is None:
        raise ConfigError(
            f"pipeline {name!r}: expected a reader before {flat[0].stage_name()!r}; it is the first stage"
        )
    sources, rest = take_sources(name, flat, initial_tasks)
    check_columns(rest)
    exchanges = [index for index, stage in enumerate(rest) if stage.is_exchange]
    if not exchanges:
        return compile_plan(name, rest, sources)
    from gristmill.stages.exchange.read_partition import partition_tasks

    named = [stage.with_(name=unique) for stage, unique in zip(rest, unique_names(name, rest), strict=True)]
    size = sources.num_bytes
    plans = [compile_plan(name, _segment(named, 0, exchanges, size), sources)]
    for number in range(1, len(exchanges) + 1):
        mark = cast("Exchange", named[exchanges[number - 1]])
        directory = exchange_directory(NO_RUN, number)
        tasks = partition_tasks(directory, number, mark.partition_count(size), total_bytes=size)
        plans.append(compile_plan(name, _segment(named, number, exchanges, size), Sources.of(tasks)))
    return _chained(plans)


def _chained(plans: Sequence[Plan]) -> Plan:
    chained = plans[-1]
    for plan in reversed(plans[:-1]):
        chained = replace(plan, then=chained)
    return chained


def _segment(stages: Sequence[AnyStage], number: int, exchanges: Sequence[int], input_bytes: int) -> list[AnyStage]:
    """The stages of one segment, with the halves of the exchanges at its ends."""
    from gristmill.stages.exchange.read_partition import ReadPartition  # these need Arrow; most pipelines need neither
    from gristmill.stages.exchange.write_partitions import WritePartitions

    start = exchanges[number - 1] + 1 if number else 0
    last = number == len(exchanges)
    inner = list(stages[start : None if last else exchanges[number]])
    before: list[AnyStage] = []
    if number:
        before = [ReadPartition(name=f"{stages[exchanges[number - 1]].stage_name()}_read")]
    if last:
        return before + inner
    mark = cast("Exchange", stages[exchanges[number]])
    sink = WritePartitions(mark.keys, mark.partition_count(input_bytes), mark.seed, name=mark.stage_name())
    sink._directory = exchange_directory(NO_RUN, number + 1)
    return [*before, *inner, sink.with_(resources=mark.resources)]
