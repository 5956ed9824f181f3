"""Calls that overlap: one worker keeps many calls of a stage under way, and each is a call like any other."""

import asyncio
import contextvars
import os
import select
import threading

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, RunFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import DocumentBatch

POOLS = [0, 2]


class _Together:
    """Lets nobody go on before `size` are here: only calls that overlap can get past it."""

    def __init__(self, size):
        self.size = size
        self.present = 0
        self.all_here = asyncio.Event()

    async def meet(self):
        self.present += 1
        if self.present >= self.size:
            self.all_here.set()
        await self.all_here.wait()


def text_of(task):
    return task.to_pyarrow()["text"][0].as_py()


def marked(task, value):
    table = task.to_pyarrow()
    return task.with_data(table.append_column("answer", pa.array([value] * len(table))))


class MeetOthers(ProcessingStage[DocumentBatch, DocumentBatch]):
    lanes = 8
    resources = Resources(cpus=1)

    async def setup(self, worker_metadata=None):
        self.together = _Together(8)

    async def process(self, task):
        await self.together.meet()
        return marked(task, os.getpid())

    def num_workers(self):
        return 1


class MeetInThreads(ProcessingStage[DocumentBatch, DocumentBatch]):
    lanes = 8

    def setup(self, worker_metadata=None):
        self.barrier = threading.Barrier(8, timeout=30)

    def process(self, task):
        self.barrier.wait()
        return marked(task, threading.current_thread().name)

    def num_workers(self):
        return 1


class DropOrFail(ProcessingStage[DocumentBatch, DocumentBatch]):
    """What the text says: keep, drop, raise or hang; in between others have their turn."""

    lanes = 16
    deadline_s = 0.5

    async def process(self, task):
        await asyncio.sleep(0)
        table = task.to_pyarrow()
        texts = table["text"].to_pylist()
        if "raise" in texts:
            raise ValueError("poisoned")
        if "hang" in texts:
            await asyncio.get_running_loop().create_future()
        drop = pa.array([text == "drop" for text in texts])
        await asyncio.sleep(0)
        self.context.drop(task, drop, reason="asked_for")
        return task.filter([text != "drop" for text in texts])


class DropOrFailInThreads(DropOrFail):
    deadline_s = None

    def process(self, task):
        table = task.to_pyarrow()
        texts = table["text"].to_pylist()
        if "raise" in texts:
            raise ValueError("poisoned")
        self.context.drop(task, pa.array([text == "drop" for text in texts]), reason="asked_for")
        return task.filter([text != "drop" for text in texts])


class AwaitOneAtATime(ProcessingStage[DocumentBatch, DocumentBatch]):
    async def process(self, task):
        await asyncio.sleep(0)
        return marked(task, "alone")


class AskInOwnThread(ProcessingStage[DocumentBatch, DocumentBatch]):
    lanes = 4
    inherits = False

    def process(self, task):
        def work():
            try:
                self.context.drop(task, pa.array([True]), reason="asked_for")
            except RuntimeError as error:
                errors.append(error)

        errors: list[RuntimeError] = []
        target = contextvars.copy_context().run if self.inherits else (lambda function: function())
        thread = threading.Thread(target=target, args=(work,))
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return task.filter([False])


class AwaitThenStream(ProcessingStage[DocumentBatch, DocumentBatch]):
    """An iterator from a coroutine: what it makes is there only when it is drawn from."""

    lanes = 4

    async def process(self, task):
        await asyncio.sleep(0)
        return self.parts(task)

    def parts(self, task):
        for number in range(3):
            if text_of(task) == "raise" and number == 1:
                raise ValueError("poisoned")
            yield marked(task, number)
        self.context.drop(task, pa.array([False]), reason="nothing")  # its context is there too


class YieldAsync(ProcessingStage[DocumentBatch, DocumentBatch]):
    async def process(self, task):
        yield task


class ExitInLane(ProcessingStage[DocumentBatch, DocumentBatch]):
    lanes = 4

    async def process(self, task):
        if text_of(task) == "exit":
            raise SystemExit(3)
        return task


class PanicError(BaseException):
    """What a library in another language raises: not an Exception, and not asked to end the process."""


class EndOddly(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Ends a call in ways that are neither a result nor an Exception."""

    lanes = 4

    async def process(self, task):
        await asyncio.sleep(0)
        how = text_of(task)
        if how == "panic":
            raise PanicError("panicked")
        if how == "exit in a task":
            await asyncio.gather(self.leave())
        if how in ("cancel", "cancel and return"):
            asyncio.current_task().cancel()
        if how == "cancel":
            await asyncio.sleep(0)
        return task

    async def leave(self):
        raise SystemExit(3)


class ShareLoop(ProcessingStage[DocumentBatch, DocumentBatch]):
    """What its calls share is bound to the loop that first waits for it."""

    lanes = 4
    batch_size = 2

    def setup(self, worker_metadata=None):
        self.gate = asyncio.Semaphore(1)
        self.failed = set()

    async def process_batch(self, tasks):
        async with self.gate:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        fresh = {text_of(task) for task in tasks} - self.failed
        if fresh:
            self.failed |= fresh
            raise ConnectionError("flaky")
        loop = id(asyncio.get_running_loop())
        return [marked(task, loop) for task in tasks]

    def num_workers(self):
        return 1


class LeaveInSetup(ProcessingStage[DocumentBatch, DocumentBatch]):
    lanes = 4

    async def setup(self, worker_metadata=None):
        raise SystemExit("no model")

    async def process(self, task):
        return task


class LeaveInTeardown(ProcessingStage[DocumentBatch, DocumentBatch]):
    lanes = 4

    async def process(self, task):
        return task

    async def teardown(self):
        raise SystemExit("no more")


class DieInLane(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Ends its process on one document, while others are under way beside it."""

    lanes = 8

    async def process(self, task):
        if text_of(task) == "die":
            os._exit(7)
        await asyncio.sleep(0.01)
        return task


class StickInLane(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A thread that cannot be cancelled: the process has to go."""

    lanes = 4
    deadline_s = 0.5

    def process(self, task):
        if text_of(task) == "stick":
            threading.Event().wait()
        return task


class FanOutInLane(ProcessingStage[DocumentBatch, DocumentBatch]):
    """More outputs than one message holds, some of them streamed."""

    lanes = 4

    def process(self, task):
        if text_of(task) == "stream":
            return (task.take([0]) for _ in range(30))
        return [task.take([0]) for _ in range(250)]


def tasks_of(*texts):
    return [
        DocumentBatch(dataset_name="lanes", data=pa.table({"text": [text], "id": [str(number)]}))
        for number, text in enumerate(texts)
    ]


def run_on(stage, texts, num_workers, **options):
    pipeline = Pipeline(name="lanes")
    pipeline.add_stage(stage)
    return pipeline.run(LocalExecutor(num_workers=num_workers, **options), initial_tasks=tasks_of(*texts))


def texts_in(result):
    return [text for task in result.tasks for text in task.to_pyarrow()["text"].to_pylist()]


def answers_in(result):
    return [answer for task in result.tasks for answer in task.to_pyarrow()["answer"].to_pylist()]


@pytest.mark.parametrize("num_workers", POOLS)
def test_as_many_calls_are_under_way_as_there_are_lanes(num_workers):
    result = run_on(MeetOthers(), map(str, range(24)), num_workers)

    assert texts_in(result) == [str(n) for n in range(24)]  # in the order of the source, whoever was first
    assert len(set(answers_in(result))) == 1


@pytest.mark.parametrize("num_workers", POOLS)
def test_calls_that_are_no_coroutines_overlap_in_threads(num_workers):
    result = run_on(MeetInThreads(), map(str, range(16)), num_workers)

    assert len(set(answers_in(result))) == 8


@pytest.mark.parametrize("num_workers", POOLS)
@pytest.mark.parametrize("stage", [DropOrFail, DropOrFailInThreads])
def test_every_call_has_a_context_of_its_own(stage, num_workers):
    texts = ["drop" if n % 3 == 0 else f"keep {n}" for n in range(60)]
    result = run_on(stage(), texts, num_workers)

    counts = result.counts[stage.__name__]
    assert counts.dropped == {"asked_for": 20}
    assert texts_in(result) == [text for text in texts if text != "drop"]


@pytest.mark.parametrize("num_workers", POOLS)
def test_one_poisoned_call_and_one_that_hangs_cost_one_document_each(num_workers):
    texts = [f"keep {n}" for n in range(40)]
    texts[7], texts[11] = "raise", "hang"
    result = run_on(DropOrFail(), texts, num_workers)

    counts = result.counts["DropOrFail"]
    assert (counts.quarantined, counts.written) == (2, 38)
    kinds = sorted(kind.partition(":")[0] for kind in counts.errors)
    assert kinds == ["DeadlineExceeded", "ValueError"]


@pytest.mark.parametrize("num_workers", POOLS)
def test_a_coroutine_is_awaited_without_lanes_too(num_workers):
    assert set(answers_in(run_on(AwaitOneAtATime(), "abc", num_workers))) == {"alone"}


@pytest.mark.parametrize("num_workers", POOLS)
def test_a_context_is_not_found_by_a_thread_that_does_not_say_whose_it_is(num_workers):
    with pytest.raises(RunFailed, match="copy_context"):
        run_on(AskInOwnThread(), "ab", num_workers)

    stage = AskInOwnThread()
    stage.inherits = True
    assert run_on(stage, "ab", num_workers).counts["AskInOwnThread"].dropped == {"asked_for": 2}


def test_what_cannot_be_run_is_refused_before_anything_starts():
    with pytest.raises(ConfigError, match="expected lanes ≥ 1; got 0"):
        run_on(AwaitOneAtATime().with_(lanes=0), "a", 0)
    with pytest.raises(ConfigError, match="got a generator"):
        run_on(YieldAsync(), "a", 0)


@pytest.mark.parametrize("num_workers", POOLS)
def test_sys_exit_in_a_coroutine_is_that_documents_error(num_workers):
    result = run_on(ExitInLane(), ["a", "exit", "b", "c", "d"], num_workers)

    assert result.counts["ExitInLane"].quarantined == 1
    assert texts_in(result) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("how", ["panic", "exit in a task", "cancel", "cancel and return"])
@pytest.mark.parametrize("num_workers", POOLS)
def test_a_call_that_ends_oddly_is_that_documents_error(num_workers, how):
    result = run_on(EndOddly(), ["a", how, "b", "c", "d"], num_workers)

    counts = result.counts["EndOddly"]
    assert (counts.quarantined, counts.returned_none) == (1, 0)
    assert texts_in(result) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("num_workers", POOLS)
def test_all_calls_of_a_worker_are_on_one_event_loop_retries_too(num_workers):
    result = run_on(ShareLoop(), map(str, range(8)), num_workers)

    assert texts_in(result) == [str(n) for n in range(8)]
    assert len(set(answers_in(result))) == 1


def test_sys_exit_in_an_async_setup_is_like_one_in_any_other():
    with pytest.raises(SystemExit, match="no model"):
        run_on(LeaveInSetup(), "ab", 0)
    with pytest.raises(RunFailed, match="LeaveInSetup: its workers end during set-up: ended with exit code 1"):
        run_on(LeaveInSetup(), "ab", 1)


def test_sys_exit_in_an_async_teardown_is_like_one_in_any_other():
    with pytest.raises(SystemExit, match="no more"):
        run_on(LeaveInTeardown(), "ab", 0)
    assert texts_in(run_on(LeaveInTeardown(), "ab", 1)) == ["a", "b"]


@pytest.mark.slow
def test_of_many_calls_under_way_the_one_that_ends_the_process_is_found():
    texts = [f"keep {n}" for n in range(40)]
    texts[5] = "die"
    result = run_on(DieInLane(), texts, 2)

    assert result.counts["DieInLane"].quarantined == 1
    assert texts_in(result) == [text for text in texts if text != "die"]


@pytest.mark.slow
def test_a_thread_past_its_deadline_ends_with_its_process_and_others_are_done_again():
    result = run_on(StickInLane(), ["a", "stick", "b", "c"], 1)

    assert result.counts["StickInLane"].quarantined == 1
    assert texts_in(result) == ["a", "b", "c"]


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("num_workers", POOLS)
def test_more_outputs_of_a_call_than_go_into_one_message_all_arrive(num_workers, lanes):
    stage = FanOutInLane().with_(lanes=lanes)
    result = run_on(stage, ["many", "stream", "many", "many", "stream", "many"], num_workers)

    assert texts_in(result) == ["many"] * 250 + ["stream"] * 30 + ["many"] * 500 + ["stream"] * 30 + ["many"] * 250


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("num_workers", POOLS)
def test_an_iterator_from_a_coroutine_is_drawn_to_its_end(num_workers, lanes):
    result = run_on(AwaitThenStream().with_(lanes=lanes), "abcdefgh", num_workers)

    assert texts_in(result) == [text for text in "abcdefgh" for _ in range(3)]
    assert answers_in(result) == [0, 1, 2] * 8
    counts = result.counts["AwaitThenStream"]
    assert (counts.read, counts.created, counts.written, counts.returned_none) == (8, 16, 24, 0)


@pytest.mark.parametrize("lanes", [1, 4])
def test_an_iterator_from_a_coroutine_that_raises_costs_its_document(lanes):
    result = run_on(AwaitThenStream().with_(lanes=lanes), ["a", "raise", "b"], 0)

    counts = result.counts["AwaitThenStream"]
    assert texts_in(result) == ["a"] * 3 + ["b"] * 3
    assert counts.quarantined == 1
    assert next(iter(counts.errors)).startswith("ValueError: poisoned")
    assert counts.read + counts.created == counts.written + counts.quarantined + sum(counts.dropped.values())


def test_lanes_are_kept_out_of_the_fingerprint_and_named_in_the_plan():
    def plan(stage):
        pipeline = Pipeline(name="lanes")
        pipeline.add_stage(stage)
        return pipeline.plan(LocalExecutor(num_workers=0), tasks_of("a"))

    one, many = plan(AwaitOneAtATime()), plan(AwaitOneAtATime().with_(lanes=64))
    assert one.fingerprint == many.fingerprint
    assert "64 calls at once" in many.describe()
    assert many.groups[0].lanes == 64


class LearnTheSize(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Says what it has found out, and with what it was started. The first worker of it waits for its successor."""

    def __init__(self, successor):
        self.successor = successor

    def setup(self, worker_metadata=None):
        self.told = worker_metadata.learnt.get("batch_tokens", 0)
        if self.told:
            self.successor.touch()

    def process(self, task):
        self.context.learn("batch_tokens", 512 if text_of(task) == "large" else 1024)
        while text_of(task) == "wait" and not self.successor.exists():
            select.select([], [], [], 0.005)
        return marked(task, self.told)


@pytest.mark.slow
def test_what_a_worker_has_learnt_is_handed_to_those_that_start_later(tmp_path):
    stage = LearnTheSize(tmp_path / "successor").with_(num_workers=1)
    result = run_on(stage, ["large", *map(str, range(40)), "wait", *map(str, range(400))], 1, worker_max_tasks=10)

    told = answers_in(result)
    assert told[0] == 0
    assert set(told[1:]) == {0, 512}  # never 1024: the smallest counts


class CountTogether(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Says how many documents came in one call."""

    fusible = False
    batch_items = 10

    def process_batch(self, tasks):
        return [marked(task, sum(each.num_items for each in tasks)) for task in tasks]


class PassAlone(ProcessingStage[DocumentBatch, DocumentBatch]):
    fusible = False

    def process(self, task):
        return task


@pytest.mark.parametrize("num_workers", POOLS)
def test_a_call_is_bounded_by_documents_where_a_stage_says_so(num_workers):
    given = [DocumentBatch("n", pa.table({"text": ["x"] * (1 + n % 4)})) for n in range(60)]
    pipeline = Pipeline("sized", stages=[PassAlone(), CountTogether()])
    result = pipeline.run(LocalExecutor(num_workers=num_workers), initial_tasks=given)

    together = answers_in(result)
    assert len(together) == sum(1 + n % 4 for n in range(60))
    assert 4 < max(together) <= 10
