"""`WorkerActor`: one worker as a Ray actor. The loop inside is that of every worker (`worker/loop.py`).

    driver                                   actor
    begin(what to do)            ────────▶   a thread that sets the stages up and runs the loop
    post(messages, references)   ────────▶   inbox ─▶ the loop, in a thread of its own
    listen()                     ◀────────   what the loop has sent since, and how many blocks go with it
    take(n)                      ◀────────   these blocks: objects that belong to the driver from then on

The driver asks for the blocks because the caller owns the result: what the actor itself put into the store would go
with the actor, and a worker that is recycled or killed must not take finished work along. When the loop has ended, the
actor may begin again with other stages (`kept_actors.py`).
"""

import contextlib
import os
import queue
import sys
import threading
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gristmill.backends.ray_actor_pool.object_blocks import ObjectBlocks
from gristmill.engine.events import Learnt
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.worker.channel import Message
from gristmill.worker.crumbs import empty_block
from gristmill.worker.job import RunSettings
from gristmill.worker.loop import limit_threads, make_loop
from gristmill.worker.stage_pickle import load_stages
from gristmill.worker.worker_log import take_over

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from ray import ObjectRef

Sent = tuple[list[Message], "list[NDArray[Any]]"]
MESSAGE_BYTES = 100_000  # of one argument: Ray makes an object of a larger one itself
LISTENING, POSTING = "listening", "posting"  # concurrency groups: neither waits for the other


@dataclass(frozen=True)
class Duty:
    """What an actor is to be: a worker of one group, for one run."""

    number: int
    group: int
    path: tuple[str, ...]  # of the driver's modules
    settings: RunSettings
    lanes: int = 1
    learnt: Learnt = ()


class Line:
    """The loop's way to the driver (`Line` in `worker/loop.py`): two queues, emptied and filled by calls from there."""

    def __init__(self, blocks: ObjectBlocks) -> None:
        self.blocks = blocks
        self.incoming: queue.SimpleQueue[tuple[list[Message], list[ObjectRef[Any]]]] = queue.SimpleQueue()
        self.outgoing: queue.SimpleQueue[Sent] = queue.SimpleQueue()

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        arrays: list[Any] = [self.blocks.look(fd) for fd in fds]
        self.outgoing.put((message, arrays))

    def receive(self) -> list[tuple[Message, list[int]]]:
        return [self._taken(self.incoming.get()), *self.poll()]

    def poll(self) -> list[tuple[Message, list[int]]]:
        messages = []
        with contextlib.suppress(queue.Empty):
            while True:
                messages.append(self._taken(self.incoming.get_nowait()))
        return messages

    def _taken(self, posted: "tuple[list[Message], list[ObjectRef[Any]]]") -> tuple[list[Message], list[int]]:
        messages, references = posted
        return messages, [self.blocks.add(reference) for reference in references]


class WorkerActor:
    """One worker. Its methods are for the driver; stages run in `_work`."""

    def __init__(self) -> None:
        self._line = Line(ObjectBlocks())
        self._untaken: deque[NDArray[Any]] = deque()

    def hello(self) -> int:
        """Answer with the number of the process, when there is one."""
        return os.getpid()

    def begin(self, duty: Duty, stages: bytes, crumbs: str) -> None:
        """Set up and start to work, leaving crumbs in this new file."""
        file = Path(crumbs)
        with file.open("x+b", buffering=0) as made:  # writing over an existing file would kill whatever maps it
            made.write(empty_block(duty.lanes))
            mapped = mmap(made.fileno(), 0)
        self._line.incoming = queue.SimpleQueue()  # what came too late for earlier work does not concern the new
        arguments = (duty, stages, mapped, file)
        threading.Thread(target=self._work, args=arguments, name="gristmill-worker", daemon=True).start()

    def _work(self, duty: Duty, stages: bytes, crumbs: mmap, file: Path) -> None:
        """Work until drained. A thread that ends in any other way takes the actor along, or it would go unnoticed."""
        clean = False
        try:
            self._run(duty, stages, crumbs)
            file.unlink(missing_ok=True)  # the next run's workers have other files
            clean = True
        finally:
            if not clean:
                traceback.print_exc()
                os._exit(1)

    def _run(self, duty: Duty, stages: bytes, crumbs: mmap) -> None:
        sys.path += [entry for entry in duty.path if entry not in sys.path]
        groups, error = load_stages(stages)
        if groups is None:
            self._line.send([("setup_failed", error)])
            return
        group = groups[duty.group]
        limit_threads(group)
        process = make_loop(
            self._line, group, duty.settings, crumbs, last=duty.group + 1 == len(groups), blocks=self._line.blocks
        )
        log = take_over(str(duty.number), process.stage_name, duty.settings.log_format)
        try:
            if process.set_up(
                WorkerMetadata(worker_id=f"{group.name}-{duty.number}", gpu_ids=_gpu_ids(), learnt=dict(duty.learnt))
            ):
                process.run()
        finally:
            log.give_back()  # the actor may become another worker next

    def post(self, messages: list[Message], references: "list[ObjectRef[Any]]") -> None:
        """Take what the driver says. Data from another machine starts on its way while earlier tasks run."""
        if references:
            import ray

            ray.wait(references, num_returns=len(references), timeout=0, fetch_local=True)
        self._line.incoming.put((messages, references))

    def listen(self) -> tuple[list[Message], int]:
        """Wait for what the worker says; return it with the number of blocks that are to be taken with it."""
        messages, arrays = self._line.outgoing.get()
        with contextlib.suppress(queue.Empty):
            while not self._has_ended(messages):
                more, further = self._line.outgoing.get_nowait()
                messages = [*messages, *more]
                arrays = [*arrays, *further]
        self._untaken.extend(arrays)
        return messages, len(arrays)

    @staticmethod
    def _has_ended(messages: list[Message]) -> bool:
        return bool(messages) and messages[-1][0] in ("drained", "setup_failed")

    def take(self, count: int) -> "tuple[bool | NDArray[Any], ...]":
        """Hand over the next blocks, after a True that tells the driver, without fetching any, that they are out."""
        return (True, *(self._untaken.popleft() for _ in range(count)))


def in_a_call(ray: ModuleType, stages: bytes) -> "bytes | ObjectRef[bytes]":
    """What workers are sent to get these stages: the stages themselves, or an object if they are large.

    Every machine that fetched an object has a copy. For a while after such a machine is gone, Ray still sends others
    there, and a worker that waits for its stages starts 10 to 30 s late, just when it is needed.
    """
    return stages if len(stages) <= MESSAGE_BYTES else ray.put(stages)


def _gpu_ids() -> tuple[str, ...]:
    import ray

    return tuple(map(str, ray.get_gpu_ids())) if ray.is_initialized() else ()
