"""What happens inside a worker, on every executor: run a group's stages on a task and account for every document.

A stage that raises is the one thing in gristmill that is caught broadly: whatever a user's code throws is data here.
`Care` says how far a failure is followed up: reported, or taken apart as `isolation.py` does.
"""

import contextlib
import copy
import inspect
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextvars import Token
from dataclasses import replace
from typing import TYPE_CHECKING

from gristmill.engine.commands import Care
from gristmill.engine.plan import AnyStage, AnyTask, Group, join_neighbours
from gristmill.errors import StageError
from gristmill.metrics.snapshot import StageCounts
from gristmill.secrets import remember_those_of, without_secrets
from gristmill.stages.base import JoinedStages, ProcessingStage
from gristmill.stages.context import CURRENT, StageContext
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import Task
from gristmill.worker.call_books import CallBooks, Item, check_is_task, item_of
from gristmill.worker.crumbs import COMPILING
from gristmill.worker.failing import StageRaised
from gristmill.worker.isolation import Isolation, LeaveCrumb, record_of
from gristmill.worker.job import Job, JobFailure, JobResult, Result, RunSettings

if TYPE_CHECKING:  # loads asyncio
    from gristmill.worker.event_loop import EventLoop


def _no_crumb(stage: int, first_row: int, end_row: int, turn: int = 0) -> None:
    pass


def _no_method(method: str, stage: int) -> None:
    pass


class _Generation:
    """Counts forks, so that a process knows that it is a child; asking for its pid would be a system call."""

    number = 0
    _counts = False

    @classmethod
    def of_this_process(cls) -> int:
        if not cls._counts:
            os.register_at_fork(after_in_child=cls._next)
            cls._counts = True
        return cls.number

    @classmethod
    def _next(cls) -> None:
        cls.number += 1


class GroupRunner:
    """The stages of one group in one worker."""

    def __init__(
        self,
        group: Group,
        *,
        last: bool,
        settings: RunSettings | None = None,
        leave_crumb: LeaveCrumb = _no_crumb,
        enter_method: Callable[[str, int], None] = _no_method,  # told before setup and teardown of every stage
        keeps_inputs: bool = True,  # False where a task that comes back is unpacked again
    ) -> None:
        self.group = group
        self.keeps_inputs = keeps_inputs
        self.stages = group.stages
        self.last = last
        self.settings = settings or RunSettings()
        self.leave_crumb = leave_crumb
        self.enter_method = enter_method
        self._generation = _Generation.of_this_process()
        self._books = CallBooks(group, given := self.settings)
        # A stage with its own process_batch may do better with several; the others need not pay for a list.
        self._own_batch = [type(s).process_batch is not ProcessingStage.process_batch for s in self.stages]
        self._one_at_a_time = [False] * len(self.stages)
        self._spare = StageContext(
            given.session, "none", given.rejects_path is not None, given.durable, given.memory_limit
        )
        self._spare.observes = self._books.recording.is_on
        for stage in self.stages:
            remember_those_of(stage)  # their errors may repeat what they were given
            if group.lanes > 1:
                stage.__dict__["_overlaps"] = True
        self._is_async = [stage.is_async for stage in self.stages]
        self._event_loop: EventLoop | None = None
        self._joined = join_neighbours(self.stages)
        self._careful: Isolation | None = None

    def _isolation(self) -> Isolation:
        """What takes tasks apart, made when the first has failed."""
        if self._careful is None:
            self._careful = Isolation(
                self.stages, self.settings.session, self._process, self.leave_crumb, most_bad=self.settings.most_bad
            )
        return self._careful

    def setup(self, metadata: WorkerMetadata) -> str:
        """Run `setup` of all stages, in order; return the traceback of the one that raised, or nothing."""
        run = self.settings.quarantine_path or ""  # in the run's directory, so it names the run as well as anything
        try:
            if "numpy" in sys.modules:  # without it nothing here calls a kernel
                from gristmill.stages.compiled_kernel import compile_missing

                compile_missing(lambda _: self.enter_method(COMPILING, 0))  # later a document would be blamed for it
            for index, name in enumerate(self.group.names):
                mine = {k.removeprefix(f"{name}/"): v for k, v in metadata.learnt.items() if k.startswith(f"{name}/")}
                given = WorkerMetadata(metadata.worker_id, metadata.allocation, metadata.gpu_ids, mine, run)
                self._call_method(index, "setup", given)
        except Exception:
            return without_secrets(traceback.format_exc())
        return ""

    def teardown(self) -> None:
        """Run `teardown` of all stages, in order."""
        try:
            for index in range(len(self.stages)):
                self._call_method(index, "teardown")
        finally:
            if self._event_loop is not None:
                self._event_loop.close()

    @property
    def event_loop(self) -> "EventLoop":
        """The loop of this worker, which starts when it is first needed: most workers never load asyncio."""
        if self._event_loop is None:
            from gristmill.worker.event_loop import EventLoop

            self._event_loop = EventLoop()
        return self._event_loop

    def _call_method(self, index: int, method: str, *arguments: object) -> None:
        stage = self.stages[index]
        self.enter_method(method, index)
        try:
            made = getattr(stage, method)(*arguments)
            if inspect.iscoroutine(made):
                self.event_loop.run(made)
        finally:
            self._end_if_forked(method, stage)

    def _end_if_forked(self, method: str, stage: AnyStage | None = None) -> None:
        """A process that a stage has forked must not come back from there: it would do the work of its parent again.

        It holds copies of everything, including the socket to the driver and the names of files to be written.
        """
        if _Generation.number != self._generation:
            name = self.group.name if stage is None else stage.stage_name()
            words = f"{name}: a process it forked came back from {method}() and is ended; end it there with os._exit()"
            with contextlib.suppress(OSError):
                os.write(2, f"gristmill: {words}\n".encode())
            os._exit(1)

    def run(self, jobs: Sequence[Job], emit: Callable[[int, str, AnyTask], None]) -> list[JobResult | JobFailure]:
        """Run jobs together; if one makes the call fail, each runs on its own so that only the culprit is blamed.

        `emit(job, item_id, task)` takes the outputs of a stage that streams, as they come.
        """
        sent = [0] * len(jobs)

        def count_and_emit(number: int, item_id: str, task: AnyTask) -> None:
            sent[number] += 1
            emit(number, item_id, task)

        try:
            return list(self._run_together(jobs, count_and_emit))
        except StageRaised as raised:
            if len(jobs) == 1:
                return [self._failure(raised, jobs[0])]
        return [self._run_alone(job, number, sent[number], emit) for number, job in enumerate(jobs)]

    def _run_alone(
        self, job: Job, number: int, skip: int, emit: Callable[[int, str, AnyTask], None]
    ) -> JobResult | JobFailure:
        """Run one job of several again; the first `skip` tasks it streams are on their way already."""
        streamed = 0

        def emit_rest(_: int, item_id: str, task: AnyTask) -> None:
            nonlocal streamed
            streamed += 1
            if streamed > skip:
                emit(number, item_id, task)

        try:
            return self._run_together([job], emit_rest)[0]
        except StageRaised as raised:
            return self._failure(raised, job)

    def _failure(self, raised: StageRaised, job: Job) -> JobFailure:
        name = next(
            (name for name, stage in zip(self.group.names, self.stages, strict=True) if stage is raised.stage),
            raised.stage.stage_name(),
        )
        return JobFailure(name, raised.explained(), raised.fault, job.task.counts_documents)

    def _run_together(self, jobs: Sequence[Job], emit: Callable[[int, str, AnyTask], None]) -> list[JobResult]:
        started = time.perf_counter()
        results = [JobResult(tuple([StageCounts() for _ in self.stages]), attempt=str(job.attempt)) for job in jobs]
        items = [self._first_item(n, job, results[n], shared=len(jobs) > 1) for n, job in enumerate(jobs)]
        for item, streamed in self._wave(0, items, jobs, results):
            self._count_written(item, results[item.job])
            # Names of written files are few bytes, and count when the job is done: all of them, or none.
            if streamed and (item.task.counts_documents or not self.last):
                emit(item.job, item.item_id, item.task)
            else:
                results[item.job].outputs.append((item.item_id, item.task))
        for job, result in zip(jobs, results, strict=True):
            if result.observed:  # of most jobs nothing is, and a context takes half a microsecond
                self._books.close(job, result, self._spare.another(result.attempt))
        elapsed = time.perf_counter() - started
        for result in results:
            result.useful_s = elapsed / len(results)
        return results

    def _count_written(self, item: Item, result: JobResult) -> None:
        if self.last and item.task.counts_documents:
            result.counts[-1].written += item.task.num_items
            self._books.recording.take_written(item.task, None, result)

    def _first_item(self, number: int, job: Job, result: JobResult, *, shared: bool) -> Item:
        # A stage may set attributes of its input, and the job may have to be done again with what it was given.
        task = copy.copy(job.task) if self.keeps_inputs or shared else job.task
        task.task_id = job.item_id
        if self.group.index == 0 and task.counts_documents:
            result.counts[0].read += task.num_items  # given as initial tasks: this is where they are first seen
        return item_of(number, job.item_id, task)

    def _wave(
        self, first: int, items: list[Item], jobs: Sequence[Job], results: list[JobResult]
    ) -> Iterator[tuple[Item, bool]]:
        """Take items through the stages from `first` on, all through one before any through the next.

        A stage that streams is followed one of its tasks at a time: only that one is in memory.
        """
        index = first
        while index < len(self.stages) and items:
            length, joined = self._joined.get(index, (1, None))
            if joined is not None and all(jobs[item.job].care is Care.NORMAL for item in items):
                items = [self._call_joined(index, length, joined, item, jobs, results) for item in items]
            else:
                length, following = 1, []
                for item, result in self._call(index, items, jobs, results):
                    if not isinstance(result, Task) and isinstance(result, Iterator):
                        yield from self._follow(index, item, result, jobs, results)
                    else:
                        following += self._children(index, item, result)
                items = following
            index += length
        for item in items:
            yield item, False

    def _follow(
        self, index: int, item: Item, made: Iterator[AnyTask], jobs: Sequence[Job], results: list[JobResult]
    ) -> Iterator[tuple[Item, bool]]:
        for number, task in enumerate(self._stream(index, item, made, jobs, results)):
            for out, _ in self._wave(index + 1, [self._child(index, item, task, number)], jobs, results):
                yield out, True

    def _children(self, index: int, item: Item, made: Result) -> list[Item]:
        if isinstance(made, list):
            return [self._child(index, item, task, number) for number, task in enumerate(made)]
        return [] if not isinstance(made, Task) else [self._child(index, item, made, None)]

    def _child(self, index: int, parent: Item, task: AnyTask, number: int | None) -> Item:
        before = parent.task
        if task is not before:
            task = task.descended_from(before, new_items=self.stages[index].makes_new_documents)
        item_id = parent.item_id if number is None else f"{parent.item_id}.{number:04d}"
        task.task_id = item_id
        return item_of(parent.job, item_id, task)

    # One stage

    def _call(
        self, index: int, items: list[Item], jobs: Sequence[Job], results: list[JobResult]
    ) -> Iterator[tuple[Item, Result]]:
        size = self.stages[index].tasks_a_call()
        alone = size == 1 or len(items) == 1 or not self._own_batch[index] or self._one_at_a_time[index]
        if alone or any(jobs[item.job].care is not Care.NORMAL for item in items):
            for item in items:
                yield item, self._call_one(index, item, jobs[item.job], results[item.job])
            return
        for start in range(0, len(items), size):
            some = items[start : start + size]
            yield from self._call_many(index, some, jobs, results)

    def _call_one(self, index: int, item: Item, job: Job, result: JobResult) -> Result:
        context = self._context(job)
        started = time.perf_counter()
        if job.care is Care.NORMAL:
            self.leave_crumb(index, 0, item.task.num_items)
            made = self._process(index, item.task, context)
        else:
            made = self._isolation().process(index, item.task, job, context, result.turns)
            result.turns += 1
        self._books.enter_call(index, item, job, made, context, result, time.perf_counter() - started)
        return made

    def _call_joined(
        self,
        index: int,
        length: int,
        joined: JoinedStages,
        item: Item,
        jobs: Sequence[Job],
        results: list[JobResult],
    ) -> Item:
        """Take an item through neighbours in one pass; if one raises, through one after another, to see which."""
        job, result = jobs[item.job], results[item.job]
        contexts = [self._spare.another(str(job.attempt)) for _ in range(length)]
        entered: list[tuple[float, int]] = []

        def enter(number: int, documents: int) -> None:
            entered.append((time.perf_counter(), documents))
            self.leave_crumb(index + number, 0, documents)

        try:
            made = joined.process(item.task, contexts, enter)
        except Exception:
            return self._call_apart(index, length, item, job, result)
        finally:
            self._end_if_forked("process")
        entered.append((time.perf_counter(), made.num_items))
        num_bytes = item.num_bytes  # of what a stage is given: what those before it dropped is gone
        for number, context in enumerate(contexts):
            (started, documents), (ended, left) = entered[number : number + 2]
            part = Item(item.job, item.item_id, item.task, documents, num_bytes)
            is_last = number + 1 == length
            num_bytes = made.content_bytes if is_last else max(0, num_bytes - sum(context.dropped_bytes.values()))
            self._books.enter(
                index + number, part, [made], context, result, ended - started, came_out=(left, num_bytes)
            )
        self._books.recording.take(index, contexts, result)
        return self._child(index, item, made, None)

    def _call_apart(self, index: int, length: int, item: Item, job: Job, result: JobResult) -> Item:
        for number in range(index, index + length):
            made = self._call_one(number, item, job, result)
            if not isinstance(made, Task):
                raise StageRaised(self.stages[number], StageError(f"expected one task for one; got {made!r:.200}"))
            item = self._child(number, item, made, None)
        return item

    def _call_many(
        self, index: int, items: list[Item], jobs: Sequence[Job], results: list[JobResult]
    ) -> Iterator[tuple[Item, Result]]:
        stage = self.stages[index]
        context = self._context(jobs[items[0].job])
        self.leave_crumb(index, 0, sum(item.task.num_items for item in items))
        started = time.perf_counter()
        token = self._enter(stage, context)
        try:
            given = self._given(index, [item.task for item in items])
            made = [list(output) if isinstance(output, Iterator) else output for output in given]
            for task in (task for output in made for task in (output if isinstance(output, list) else [output])):
                if isinstance(task, Task):
                    task.settle()
        except Exception as error:
            raise StageRaised(stage, error) from error
        finally:
            CURRENT.reset(token)
            self._end_if_forked("process_batch", stage)
        if len(made) != len(items):
            # It is unclear which output belongs to which input; one task at a time there is no question.
            self._one_at_a_time[index] = True
            for item in items:
                yield item, self._call_one(index, item, jobs[item.job], results[item.job])
            return
        seconds = (time.perf_counter() - started) / len(items)
        listed = [output if isinstance(output, list) else [] if output is None else [output] for output in made]
        for item, output, outputs, own in zip(
            items, made, listed, self._divided(index, context, items, listed, jobs), strict=True
        ):
            if output is None and own.is_clean and item.task.counts_documents:
                results[item.job].counts[index].returned_none += item.documents
            self._books.enter(index, item, outputs, own, results[item.job], seconds)
            yield item, output

    def _divided(
        self, index: int, context: StageContext, items: list[Item], listed: list[list[AnyTask]], jobs: Sequence[Job]
    ) -> list[StageContext]:
        """What a call of several tasks reported, task by task."""
        tasks = []
        for item, outputs in zip(items, listed, strict=True):
            for output in outputs:
                check_is_task(self.stages[index], output)
            came_out = sum([task.num_items for task in outputs if task.counts_documents])
            lacks = item.documents - came_out if item.task.counts_documents else 0
            tasks.append((item.item_id, str(jobs[item.job].attempt), lacks))
        return context.divided(tasks)

    def _context(self, job: Job) -> StageContext:
        """A context for one call; the last one again if nothing was written in it."""
        spare, attempt = self._spare, str(job.attempt)
        used = not spare.is_clean or spare.metrics is not None or spare.has_observed
        if used or spare.attempt != attempt:
            self._spare = spare.another(attempt)
        return self._spare

    def _enter(self, stage: AnyStage, context: StageContext) -> Token[StageContext | None]:
        """Give a call its context. Where calls do not overlap, threads the stage starts itself find it too."""
        if self.group.lanes == 1:
            stage.__dict__["_context"] = context  # what the property sets, without the cost of calling it
        return CURRENT.set(context)

    def _given(self, index: int, tasks: list[AnyTask]) -> Sequence[Result]:
        stage = self.stages[index]
        if self._is_async[index]:
            made: Sequence[Result] = self.event_loop.run(self.event_loop.call_stage(stage, tasks))
            return made
        return stage.process_batch(tasks)

    def _process(self, index: int, task: AnyTask, context: StageContext) -> Result:
        stage = self.stages[index]
        token = self._enter(stage, context)
        try:
            given = self._given(index, [task]) if self._is_async[index] else stage.process_batch([task])
            return self._one_of(stage, given)
        except StageRaised:
            raise
        except Exception as error:
            raise StageRaised(stage, error) from error
        finally:
            CURRENT.reset(token)
            self._end_if_forked("process", stage)

    @staticmethod
    def _one_of(stage: AnyStage, made: Sequence[Result]) -> Result:
        """What a stage made of one task, checked."""
        # Whether something is a task is quick to check; whether it is an iterator takes 0.3 µs, here and below.
        if type(made) is list and len(made) == 1 and isinstance(made[0], Task):
            made[0].settle()
            return made[0]
        if isinstance(made, list | tuple) and len(made) == 1:
            result: Result = made[0]
        else:
            result = list(made)  # type: ignore[arg-type]  # several outputs of one input, given flat
        if isinstance(result, Iterator):
            return _drawn(stage, result)
        if result is not None:
            for output in result if isinstance(result, list) else [result]:
                check_is_task(stage, output)
                output.settle()
        return result

    def _stream(
        self, index: int, item: Item, made: Iterator[AnyTask], jobs: Sequence[Job], results: list[JobResult]
    ) -> Iterator[AnyTask]:
        """Draw from a stage that streams, accounting for each of its tasks as it comes."""
        stage, job, result = self.stages[index], jobs[item.job], results[item.job]
        turn = max(0, result.turns - 1)  # that of the call which began to stream
        while True:
            context = self._context(job)
            token = self._enter(stage, context)
            started = time.perf_counter()
            # The last task it gave may have left crumbs of later stages.
            self.leave_crumb(index, 0, item.task.num_items, turn)
            try:
                task = next(made, None)
            except StageRaised as raised:
                if job.care is Care.NORMAL or not job.blames_documents(raised.fault):
                    raise
                # What was streamed before is on its way already; the rest of this source is lost, and recorded as lost.
                record = record_of(raised.error, item.task, None)
                left = item.documents - item.seen if item.task.counts_documents else 0
                if left > 0 or not item.task.counts_documents:
                    context.quarantine(replace(record, num_documents=max(0, left)))
                task = None
            finally:
                CURRENT.reset(token)
                self._end_if_forked("process", stage)
            seconds = time.perf_counter() - started
            outputs = [] if task is None else [task]
            self._books.enter(index, item, outputs, context, result, seconds, more_to_come=task is not None)
            if task is None:
                return
            yield task


def _drawn(stage: AnyStage, made: Iterator[AnyTask]) -> Iterator[AnyTask]:
    """What a stage streams: its code runs, and may raise, whenever the next task is asked for."""
    try:
        for task in made:
            if isinstance(task, Task):
                task.settle()
            yield task
    except Exception as error:
        raise StageRaised(stage, error) from error
