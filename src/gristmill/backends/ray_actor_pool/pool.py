"""`RayPool`: the workers of a run as Ray actors, seen from the driver. It decides nothing.

Everything Ray answers arrives in one queue, by callbacks of futures, so that a poll costs the same with one worker as
with a thousand. No data is fetched here: the driver holds references (`object_blocks.py`).

A worker is lost when a call to it fails and the keeper of its machine says where it was. When the keeper fails too, or
Ray says that the node is gone, the machine is lost with everything on it.
"""

import contextlib
import functools
import math
import os
import queue
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from gristmill.backends.ray_actor_pool.actor import LISTENING, POSTING, Duty, WorkerActor, in_a_call
from gristmill.backends.ray_actor_pool.kept_actors import MOST_BYTES
from gristmill.backends.ray_actor_pool.machines import OPEN_S, Machine, Machines, misfit
from gristmill.backends.ray_actor_pool.object_blocks import ObjectBlocks
from gristmill.engine import events as e
from gristmill.engine.plan import AnyTask, Group
from gristmill.engine.policies.packing import UNITS, share_of_gpu
from gristmill.errors import RunFailed
from gristmill.metrics.node_sample import SAMPLE_S, NodeSample
from gristmill.runs.user import waiting_for
from gristmill.worker.channel import Message
from gristmill.worker.crumbs import place_of, read_crumb
from gristmill.worker.desk import Hearing, ParcelShelf, Posting
from gristmill.worker.job import RunSettings
from gristmill.worker.machine import resident_bytes
from gristmill.worker.stage_pickle import pickled
from gristmill.worker.wire import pack

if TYPE_CHECKING:
    from concurrent.futures import Future

CRUMB_S = 2.0  # for a machine to say where a worker is
LOOK_S = 1.0  # between two looks at the nodes; Ray answers in under a millisecond
PATIENCE_S = 60.0  # for an actor to start: a second where its CPUs are free, and longer on a busy machine

Answer = Callable[["Future[Any]"], list[e.Event]]


@dataclass
class _Worker:
    group: Group
    machine: Machine
    actor: Any  # a handle of a WorkerActor
    hearing: Hearing
    crumbs: str
    cpus_asked: float
    may_be_kept: bool
    started_at: float
    learnt: e.Learnt = ()
    has_begun: bool = False
    pid: int = 0
    waited_for_s: float = PATIENCE_S  # until its slow start is mentioned
    kill_reason: str | None = None
    posted: list[tuple[str, object]] = field(default_factory=list)  # goes out as one message
    posted_fds: list[int] = field(default_factory=list)


class RayPool(Posting):
    """Actors on the machines of a cluster."""

    def __init__(self, groups: tuple[Group, ...], settings: RunSettings, machines: Machines) -> None:
        self.groups = groups
        self.settings = settings
        self.machines = machines
        self._ray = machines.ray
        self._name = uuid.uuid4().hex  # of its crumbs: keepers may outlive a run, and workers are numbered from 0 again
        self._blocks = ObjectBlocks()
        self._shelf = ParcelShelf(self._blocks)
        self._workers: dict[int, _Worker] = {}
        self._dirty: dict[int, None] = {}
        self._answers: queue.SimpleQueue[tuple[Answer, Future[Any]]] = queue.SimpleQueue()
        self._messages: list[str] = []
        self._news: list[e.Event] = []  # events that begin in this process
        self._looked_at = 0.0
        self._sampled_at = 0.0
        self._asked: set[int] = set()  # machines whose next sample is on its way
        self._samples: dict[int, NodeSample] = {}

    # Tasks

    def pack(self, task: AnyTask) -> int:
        parcel = pack(task, self._blocks)
        if parcel.fd >= 0:
            self._blocks.store(parcel.fd)
        return self._shelf.put(parcel)

    def keep(self, payload: int) -> Callable[[], AnyTask]:
        return self._shelf.keep(payload)

    # Starting and ending

    def open(self) -> None:
        """Make sure that there are machines, each set up once, and that the stages can be sent to them."""
        self._stages = in_a_call(self._ray, pickled(self.groups))
        self._actor = self._ray.remote(concurrency_groups={LISTENING: 1, POSTING: 1})(WorkerActor)
        invited = [(node, *self.machines.invite(node)) for node in self.machines.fresh()]
        deadline = time.monotonic() + OPEN_S
        for node, keeper, answer in invited:
            address = node["NodeManagerAddress"]
            try:
                with waiting_for(lambda address=address: f"waiting for node {address}, setup_on_node included"):  # type: ignore[misc]
                    place, error = answer.result(max(0.0, deadline - time.monotonic()))
            except (TimeoutError, self._ray.exceptions.RayError) as problem:
                if node["NodeID"] not in self.machines.alive():  # Ray lists a node for a while after it has gone
                    self.machines.forget(node["NodeID"])
                    continue
                raise RunFailed(_no_keeper(address, problem)) from problem
            error = error or misfit(address, place)
            if error:
                raise RunFailed(error)
            self.machines.admit(node, keeper, place)
        if not self.machines.used:
            raise RunFailed(
                "RayActorPoolExecutor: expected at least one node with CPUs; got none. "
                "Add one to the cluster, or allow the head node with ignore_head_node=False"
            )

    def close(self) -> None:
        """End every worker that is not kept for the next run, and leave the machines."""
        for worker in self._workers.values():
            self._ray.kill(worker.actor)
        self._workers.clear()
        self.machines.leave()

    def start(self, number: int, group: int, node: int, gpus: tuple[int, ...], learnt: e.Learnt = ()) -> None:
        machine, plan = self.machines.used[node], self.groups[group]
        asked = machine.ask_cpus(plan.resources.cpus)
        env = plan.stages[0].runtime_env
        may_be_kept = self.machines.kept.keeps_workers and not gpus and not env
        kept = self.machines.kept.take_worker(machine.node_id, asked) if may_be_kept else None
        actor = kept or self._make(machine, asked, _share(plan, machine, gpus), dict(env) if env else None)
        worker = _Worker(
            plan,
            machine,
            actor,
            Hearing(number, self._shelf),
            f"{machine.crumbs}/{self._name}-{number}",
            asked,
            may_be_kept,
            time.monotonic(),
            learnt=learnt,
        )
        self._workers[number] = worker
        self._ask(number, actor.hello.remote(), functools.partial(self._begin, number))

    def _make(self, machine: Machine, cpus: float, gpus: float, env: dict[str, object] | None) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.machines.kept.make_room(machine.node_id)
        options = {
            "num_cpus": cpus,
            "num_gpus": gpus,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(machine.node_id, soft=False),
            "max_restarts": 0,
            "runtime_env": env,
        }
        return self._actor.options(**options).remote()

    def _begin(self, number: int, worker: _Worker, pid: int) -> list[e.Event]:
        """The process of a worker has started."""
        worker.pid = pid
        worker.has_begun = True
        worker.waited_for_s = math.inf
        duty = Duty(number, worker.group.index, tuple(sys.path), self.settings, worker.group.lanes, worker.learnt)
        begin = worker.actor.begin.options(concurrency_group=POSTING, num_returns=0)
        begin.remote(duty, self._stages, worker.crumbs)
        self._listen(number)
        return []

    def drain(self, number: int) -> None:
        worker = self._workers.get(number)
        if worker is not None and not worker.has_begun:  # no need to wait for a process that has nothing to do
            self._let_go(number)
            self._news.append(e.WorkerExited(number))
        else:
            super().drain(number)

    def kill(self, number: int, reason: str) -> None:
        worker = self._workers.get(number)
        if worker is not None:
            worker.kill_reason = reason
            self._ray.kill(worker.actor)

    # Sending

    def _post(self, number: int, message: tuple[str, object], fds: Sequence[int] = ()) -> None:
        worker = self._workers.get(number)
        if worker is not None:
            worker.posted.append(message)
            worker.posted_fds += fds
            self._dirty[number] = None

    def flush(self) -> None:
        """Send what has been posted."""
        for number in self._dirty:
            worker = self._workers.get(number)
            if worker is not None:
                references = [self._blocks.look(fd) for fd in worker.posted_fds]
                post = worker.actor.post.options(concurrency_group=POSTING, num_returns=0)
                post.remote(worker.posted, references)
                worker.posted, worker.posted_fds = [], []
        self._dirty.clear()

    # Receiving

    def poll(self, timeout: float) -> list[e.Event]:
        """Wait for news and return it as events."""
        events, self._news = self._news, []
        waits = timeout > 0 and not events
        with contextlib.suppress(queue.Empty):
            answer, future = self._answers.get(timeout=timeout) if waits else self._answers.get_nowait()
            while True:
                events += answer(future)
                answer, future = self._answers.get_nowait()
        now = time.monotonic()
        if now - self._looked_at > LOOK_S:
            self._looked_at = now
            self._speak_of_late_starters(now)
            events += self._look_at_nodes()
        if now - self._sampled_at > SAMPLE_S:
            self._sampled_at = now
            self._ask_for_samples()
        return events

    def _ask_for_samples(self) -> None:
        """Ask every machine how it is doing; one that has not answered yet is not asked again."""
        for machine in self.machines.used.values():
            if machine.number not in self._asked:
                self._asked.add(machine.number)
                self._when_done(machine.keeper.sample.remote(), functools.partial(self._sampled, machine))

    def _sampled(self, machine: Machine, future: "Future[Any]") -> list[e.Event]:
        self._asked.discard(machine.number)
        is_there = machine.number in self.machines.used
        if is_there and future.exception() is None:  # otherwise it is gone, which is noticed elsewhere
            alike = [other for other in self.machines.used.values() if other.address == machine.address]
            name = machine.address if len(alike) < 2 else f"{machine.address}#{machine.number}"
            self._samples[machine.number] = msgspec.structs.replace(future.result(), node=name)
        return []

    def samples(self) -> list[NodeSample]:
        """Every machine, as its keeper last said; even after the run is over and the machines have been left."""
        return list(self._samples.values())

    def _when_done(self, reference: Any, answer: Answer) -> None:
        """Have `answer` called by a later poll; Ray calls from a thread of its own."""
        reference.future().add_done_callback(lambda future: self._answers.put((answer, future)))

    def _ask(self, number: int, reference: Any, then: Callable[[_Worker, Any], list[e.Event]]) -> None:
        """Have `then` called with what a worker answers, if it answers and is still ours."""

        def answered(future: "Future[Any]") -> list[e.Event]:
            worker = self._workers.get(number)
            if worker is None:
                return []
            error = future.exception()
            return then(worker, future.result()) if error is None else self._failed(number, worker, error)

        self._when_done(reference, answered)

    def _listen(self, number: int) -> None:
        listen = self._workers[number].actor.listen.options(concurrency_group=LISTENING)
        self._ask(number, listen.remote(), functools.partial(self._heard, number))

    def _heard(self, number: int, worker: _Worker, said: tuple[list[Message], int]) -> list[e.Event]:
        messages, count = said
        if not count:
            return self._understood(number, worker, messages, [])
        take = worker.actor.take.options(concurrency_group=LISTENING, num_returns=count + 1)
        out, *references = take.remote(count)
        self._ask(number, out, lambda worker, _: self._understood(number, worker, messages, references))
        return []

    def _understood(
        self, number: int, worker: _Worker, messages: list[Message], references: list[Any]
    ) -> list[e.Event]:
        fds = [self._blocks.add(reference, machine=worker.machine.number) for reference in references]
        events = worker.hearing.events(messages, fds)
        if worker.hearing.drained:
            self._let_go(number)
            return [*events, e.WorkerExited(number)]
        if worker.hearing.failed_setup:
            self._ray.kill(worker.actor)
            self._remove(number)
            return events
        self._listen(number)
        return events

    def _let_go(self, number: int) -> None:
        """A worker has nothing to do any more: its actor ends, or waits for the next run."""
        worker = self._workers[number]
        if worker.may_be_kept and worker.hearing.rss_bytes < MOST_BYTES:
            self.machines.kept.put_worker(worker.machine.node_id, worker.cpus_asked, worker.actor)
        else:
            self._ray.kill(worker.actor)
        self._remove(number)

    def _remove(self, number: int) -> None:
        worker = self._workers.pop(number)
        worker.machine.cpus_asked -= worker.cpus_asked

    # What ends

    def _failed(self, number: int, worker: _Worker, error: BaseException) -> list[e.Event]:
        """A call to a worker has failed: ask its machine where it was. If that fails too, it is the machine."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(worker.actor)  # an actor that is only unreachable must not go on beside its successor
        crumb = worker.machine.keeper.read_crumb.remote(worker.crumbs)
        self._when_done(crumb, functools.partial(self._ended, number, error))
        return []

    def _ended(self, number: int, error: BaseException, future: "Future[Any]") -> list[e.Event]:
        worker = self._workers.get(number)
        if worker is None:
            return []
        if future.exception() is not None:
            return self._lose(worker.machine)
        crumb = future.result()
        cause, place = worker.kill_reason or _cause(error), place_of(crumb, worker.group)
        self._messages.append(f"a worker of {worker.group.name} ended: {cause}" + (f" ({place})" if place else ""))
        self._remove(number)
        return [e.WorkerLost(number, cause, read_crumb(crumb))]

    def _lose(self, machine: Machine) -> list[e.Event]:
        """A machine is gone, with its workers and the data on it."""
        if machine.number not in self.machines.used:
            return []
        self.machines.forget(machine.node_id)
        self._samples.pop(machine.number, None)
        self._blocks.lose(machine.number)
        for number, worker in list(self._workers.items()):
            if worker.machine is machine:
                with contextlib.suppress(self._ray.exceptions.RayError):
                    self._ray.kill(worker.actor)
                self._remove(number)
        self._messages.append(f"node {machine.address} is gone; what was under way there is done again elsewhere")
        return [e.NodeLost(machine.number)]

    def _speak_of_late_starters(self, now: float) -> None:
        for worker in self._workers.values():
            if now - worker.started_at > worker.waited_for_s:
                worker.waited_for_s *= 4
                need = worker.group.resources
                self._messages.append(
                    f"Ray has not started a worker of {worker.group.name} on node {worker.machine.address} for "
                    f"{now - worker.started_at:.0f} s; it needs {need.cpus:g} CPUs and {need.gpus:g} GPUs there, which "
                    "another program may be using (see: ray status)"
                )

    def _look_at_nodes(self) -> list[e.Event]:
        for node in self.machines.fresh():
            keeper, answer = self.machines.invite(node)
            welcomed = functools.partial(self._welcomed, node, keeper)
            answer.add_done_callback(lambda future, welcomed=welcomed: self._answers.put((welcomed, future)))  # type: ignore[misc]
        return [event for machine in self.machines.gone() for event in self._lose(machine)]

    def _welcomed(self, node: dict[str, Any], keeper: Any, future: "Future[Any]") -> list[e.Event]:
        problem = future.exception()
        if problem is None:
            place, error = future.result()
            error = error or misfit(node["NodeManagerAddress"], place)
            if not error:
                self._messages.append(f"node {node['NodeManagerAddress']} has joined")
                return [self.machines.admit(node, keeper, place).joined()]
        else:
            error = _no_keeper(node["NodeManagerAddress"], problem)
        self._messages.append(f"node {node['NodeManagerAddress']} is not used: {error}")
        return []

    # Words

    def describe(self, number: int) -> str:
        worker = self._workers[number]
        process = f" (process {worker.pid})" if worker.pid else ""
        return f"worker {number}{process} of {worker.group.name} on node {worker.machine.address}"

    def where(self, number: int) -> str:
        """In which stage and document a worker is, if its machine answers in time."""
        worker = self._workers[number]
        if not worker.pid:
            return "Ray has not started its process yet"
        try:
            left = self._ray.get(worker.machine.keeper.look_at_crumb.remote(worker.crumbs), timeout=CRUMB_S)
        except self._ray.exceptions.RayError:
            return "its machine does not answer"
        return place_of(left, worker.group)

    def take_messages(self) -> list[str]:
        messages, self._messages = self._messages, []
        return messages

    def memory_bytes(self) -> int:
        """Resident memory of the driver, and the most each worker has had."""
        return resident_bytes([os.getpid()]) + sum(worker.hearing.rss_bytes for worker in self._workers.values())


def _share(group: Group, machine: Machine, gpus: tuple[int, ...]) -> float:
    """The GPUs to ask Ray for: whole ones, or a share of one."""
    if not gpus:
        return 0.0
    if len(gpus) > 1:
        return float(len(gpus))
    return (share_of_gpu(group.resources, machine.gpu_memory_gb[gpus[0]]) or UNITS) / UNITS


def _cause(error: BaseException) -> str:
    """Why an actor has ended, in one line: Ray says it in the last of several."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "OutOfMemory" in type(error).__name__ or any("memory monitor" in line for line in lines):
        return "killed because memory ran out"
    return lines[-1][:300] if lines else type(error).__name__


def _no_keeper(address: str, problem: BaseException) -> str:
    why = _cause(problem) if str(problem) else "no answer"
    return (
        f"node {address}: expected a worker process to start there; got: {why}. "
        "gristmill and what the stages import have to be installed on every node, in the Python that runs Ray"
    )
