"""Segments: a pipeline with exchanges is a chain of plans, each of which begins when the one before is done.

An exchange becomes a stage that writes at the end of one segment and a stage that reads at the start of the next. The
engine knows nothing of it: a segment is a plan like any other, with a ledger of its own.
"""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from gristmill.engine.plan import AnyStage, Plan
from gristmill.pipeline.compile import Sources, compile_plan, unique_names
from gristmill.runs.publication import NO_RUN, exchange_directory

if TYPE_CHECKING:
    from gristmill.stages.exchange.exchange import Exchange


def compile_segments(name: str, stages: Sequence[AnyStage], sources: Sources) -> Plan:
    """Return the plan of the first segment of a pipeline; those after it hang on `Plan.then`."""
    line = _with_barriers(stages)
    exchanges = [index for index, stage in enumerate(line) if stage.is_exchange]
    if not exchanges:
        return compile_plan(name, line, sources)
    named = [stage.with_(name=unique) for stage, unique in zip(line, unique_names(line), strict=True)]
    size = sources.num_bytes
    plans = [compile_plan(name, _segment(named, 0, exchanges, size), sources)]
    for number in range(1, len(exchanges) + 1):
        mark = cast("Exchange", named[exchanges[number - 1]])
        tasks = mark._tasks_behind(exchange_directory(NO_RUN, number), number, plans[-1].source_names, size)
        plans.append(compile_plan(name, _segment(named, number, exchanges, size), Sources.of(tasks)))
    return reduce(lambda behind, plan: replace(plan, then=behind), plans[-2::-1], plans[-1])


def _with_barriers(stages: Sequence[AnyStage]) -> list[AnyStage]:
    """Put a barrier ahead of each stage that searches, unless files are all it has to read again.

    A search reads the rows ahead of it several times. If they are still as they were read, reading them again costs no
    more than it would cost to write them down: 0.14 s of a core for 110 MB of JSON lines, either way.
    """
    line: list[AnyStage] = []
    can_read_again = True  # everything since the beginning of the segment
    for stage in stages:
        if stage.searches and not (can_read_again and line):
            from gristmill.stages.exchange.barrier import Barrier

            line.append(Barrier(name=f"{stage.stage_name()}_rows"))
            can_read_again = True
        can_read_again = stage.is_exchange or (can_read_again and stage.can_read_again)
        line.append(stage)
    return line


def _segment(stages: Sequence[AnyStage], number: int, exchanges: Sequence[int], input_bytes: int) -> list[AnyStage]:
    """The stages of one segment, with the halves of the exchanges at its ends."""
    start = exchanges[number - 1] + 1 if number else 0
    last = number == len(exchanges)
    inner = list(stages[start : None if last else exchanges[number]])
    before = [cast("Exchange", stages[exchanges[number - 1]])._second_half()] if number else []
    if last:
        return before + inner
    mark = cast("Exchange", stages[exchanges[number]])
    sink = mark._first_half(input_bytes)
    sink._directory = exchange_directory(NO_RUN, number + 1)
    return [*before, *inner, sink.with_(resources=mark.resources)]
