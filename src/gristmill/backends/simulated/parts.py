"""What a pretended world is made of: workers with their calls, data that is somewhere, and what is going to happen.

`World` moves them; what a task does is for its subclasses to say.
"""

import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.plan import AnyStage, Group
from gristmill.errors import EngineBug
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources

NOWHERE = -1  # where a name is, as opposed to data
GONE = -2  # where data is whose machine is gone


def pretended_group(
    index: int,
    name: str,
    resources: Resources,
    *,
    batch_size: int = 1,
    num_workers: int | None = None,
    deadline_s: float | None = None,
    **further: bool | int,
) -> Group:
    """Return a group of one stage that is never called; `further` are fields of a group: may_run_twice, lanes."""
    stages: tuple[AnyStage, ...] = (ProcessingStage(),)
    return Group(
        index,
        stages,
        (name,),
        index,
        resources,
        batch_size,
        num_workers,
        deadline_s,
        **further,  # type: ignore[arg-type]
    )


@dataclass(slots=True)
class Parcel:
    """The pretended data of one task, and the handle by which the scheduler knows it."""

    number: int
    item_id: str
    num_bytes: int
    root: int  # the source partition it came from
    node: int = NOWHERE
    home: int = NOWHERE  # the machine it was made on
    path_s: float = 0.0  # how long its way from the source took

    @property
    def is_lost(self) -> bool:
        return self.node == GONE


class Data:
    """All parcels that are not released, and the bytes on every machine."""

    def __init__(self) -> None:
        self.held: dict[int, Parcel] = {}
        self.peak: dict[int, int] = {}  # the most bytes each machine has held, lost machines included
        self._resident = Counter[int]()
        self._made = 0

    def make(self, item_id: str, num_bytes: int, *, root: int, node: int = NOWHERE, path_s: float = 0.0) -> Parcel:
        """Data comes into being on a machine, or a name in a list."""
        parcel = Parcel(self._made, item_id, num_bytes, root, NOWHERE, node, path_s)
        self._made += 1
        self.held[parcel.number] = parcel
        self._put(parcel, node)
        return parcel

    def _put(self, parcel: Parcel, node: int) -> None:
        if parcel.node >= 0:
            self._resident[parcel.node] -= parcel.num_bytes
        parcel.node = node
        if node >= 0:
            self._resident[node] += parcel.num_bytes
            self.peak[node] = max(self.peak.get(node, 0), self._resident[node])

    def use(self, payload: object) -> Parcel:
        """Return the parcel behind a handle; EngineBug if it was released."""
        if not isinstance(payload, Parcel) or payload.number not in self.held:
            raise EngineBug(f"pretended world: expected a payload that is not released; got {payload!r}")
        return payload

    def release(self, payload: object) -> None:
        """Data is no longer needed."""
        parcel = self.use(payload)
        self._put(parcel, NOWHERE)
        del self.held[parcel.number]

    def move(self, parcel: Parcel, node: int) -> int:
        """Data goes to the machine of its worker; return how many bytes have to travel."""
        if parcel.node in (node, NOWHERE):
            return 0
        self._put(parcel, node)
        return parcel.num_bytes

    def join_node(self, node: int) -> None:
        """A machine is there."""
        self.peak.setdefault(node, 0)

    def lose_node(self, node: int) -> None:
        """A machine is gone with its data. What was lost on the way to a worker is still where it was made."""
        for parcel in self.held.values():
            if parcel.home == node:
                parcel.home = GONE
            if parcel.node == node:
                self._put(parcel, parcel.home)


@dataclass(eq=False, slots=True)
class Call:
    """Tasks that a worker takes together. The first of `tasks` is at hand; `emitted` and `credits` are that one's."""

    tasks: deque[c.Assignment]
    since: float = math.inf  # when it began
    emitted: int = 0
    credits: int = 0
    next: "Happening | None" = None

    def turn(self) -> None:
        """Another task is at hand."""
        self.emitted, self.credits = self.tasks[0].skip, c.EMIT_CREDITS


@dataclass(eq=False)
class Worker:
    """One worker. Calls wait in the order in which they were sent; as many run as it has lanes."""

    id: int
    group: int
    node: int
    lanes: int
    started_at: float
    ready_at: float = math.inf
    draining: bool = False
    gone: bool = False
    waiting: deque[Call] = field(default_factory=deque)
    running: list[Call] = field(default_factory=list)
    busy_s: float = 0.0  # these three are filled in by `Simulation`
    wasted_s: float = 0.0
    killed_s: float = 0.0  # of what was wasted

    @property
    def ready(self) -> bool:
        return self.ready_at < math.inf

    @property
    def todo(self) -> list[c.Assignment]:
        """Every task it has, those under way first."""
        return [task for call in (*self.running, *self.waiting) for task in call.tasks]

    def under_way(self) -> list[c.Assignment]:
        """The task each lane is at."""
        return [call.tasks[0] for call in self.running]

    def recall(self, tasks: tuple[int, ...]) -> None:
        """Skip tasks of calls that have not begun."""
        for call in self.waiting:
            call.tasks = deque(task for task in call.tasks if task.task not in tasks)
        self.waiting = deque(call for call in self.waiting if call.tasks)


@dataclass(eq=False, slots=True)
class Happening:
    """Something that will happen: `what` returns the event to tell the scheduler, if there is one.

    It is the doing `of` a worker, the source, the ledger, the machine under a worker that was killed, or an alarm.
    """

    due: float
    number: int
    what: Callable[[], e.Event | None]
    of: "Worker | str"
    void: bool = False  # something else has happened instead

    @property
    def is_void(self) -> bool:
        return self.void or (isinstance(self.of, Worker) and self.of.gone)
