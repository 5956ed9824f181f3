"""Memory, in bytes: who may start another task, and on which machine.

Held bytes are the inputs of tasks that wait or run, on the machine that made them; reserved bytes are what tasks that
run are expected to need beyond that: their working copies and outputs. Sending a task of group g to a machine needs

    held + reserved + need(task) + sum over later groups j of unmet_j  <=  limit        (all of that machine)

where unmet_j is what group j lacks of its lane: room for the largest task it has seen, in and out. Memory is thus taken
in one direction, towards the sink, which frees it: an upstream stage can never fill the room a downstream stage needs,
so there is no deadlock. A task too large for this runs alone, when nothing is left further on that could go first.

A task needs its input times the expansion its group has shown. One whose size nobody knows needs what others like it
have made. Both are close to the 95th percentile.
"""

from dataclasses import dataclass, field

import msgspec

FIRST_GUESS = 5.0  # bytes needed per input byte before anything is measured: parsed columns, a filtered copy, output
MAX_GUESS = 32.0  # an input is perhaps compressed, and small ones are allowed to be by this factor
UNKNOWN_BYTES = 256 << 20  # what may come of one unmeasured task beyond the guess: a few decoded images, a short film
FORGET = 0.98  # the estimate is a maximum that fades, close to a p95 over the last fifty tasks


class NodeBytes(msgspec.Struct):
    """The bytes on one machine, by group and in all."""

    limit: int
    held: list[int]
    reserved: list[int]
    held_total: int = 0
    reserved_total: int = 0


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """What a task that runs is expected to need."""

    node: int
    group: int
    num_bytes: int


@dataclass
class MemoryBook:
    """The bytes of all machines. Inputs of the first group are names: nothing is held for them anywhere."""

    num_groups: int
    nodes: dict[int, NodeBytes] = field(default_factory=dict)
    lane: list[int] = field(init=False)  # per group: the largest input so far
    expansion: list[float | None] = field(init=False)  # of inputs with a size
    made: list[float | None] = field(init=False)  # bytes, from inputs without
    reserved: dict[int, Reservation] = field(default_factory=dict)  # by task

    def __post_init__(self) -> None:
        self.lane = [0] * self.num_groups
        self.expansion = [None] * self.num_groups
        self.made = [None] * self.num_groups

    # Machines

    def add_node(self, node: int, limit: int) -> None:
        """A machine has so many bytes for data; one that is known already has only repeated itself."""
        if node in self.nodes:
            return
        self.nodes[node] = NodeBytes(limit, [0] * self.num_groups, [0] * self.num_groups)

    def remove_node(self, node: int) -> None:
        """A machine is gone with all that was on it; what ran there has been taken back before."""
        self.nodes.pop(node, None)

    @property
    def limit(self) -> int:
        """Bytes of all machines together."""
        return sum(node.limit for node in self.nodes.values())

    @property
    def held_total(self) -> int:
        """Bytes of inputs on all machines."""
        return sum(node.held_total for node in self.nodes.values())

    # Estimates

    def need(self, group: int, num_bytes: int) -> int:
        """Bytes a task of this size is expected to take beyond its input."""
        if num_bytes:
            expansion = self.expansion[group]
            if expansion is None:
                return int(min(num_bytes * MAX_GUESS, num_bytes * FIRST_GUESS + UNKNOWN_BYTES))
            return int(num_bytes * expansion)
        made = self.made[group]
        return UNKNOWN_BYTES if made is None else int(made)

    def observe(self, group: int, num_bytes: int, peak_bytes: int) -> None:
        """Learn how many bytes a task of `num_bytes` really took."""
        if num_bytes:
            self.expansion[group] = _fading_maximum(self.expansion[group], peak_bytes / num_bytes)
        else:
            self.made[group] = _fading_maximum(self.made[group], peak_bytes)

    # Tasks

    def admits(self, group: int, num_bytes: int, *, at: int, source: int | None) -> bool:
        """Whether a task whose input is at `source` may be sent to a worker on the machine `at` now."""
        return self._has_room(self.nodes[at], group, self._amount(group, num_bytes, moves=source != at))

    def _has_room(self, node: NodeBytes, group: int, amount: int) -> bool:
        if node.reserved_total == 0 and not any(node.held[group + 1 :]):
            return True  # nothing runs here and nothing waits further on: alone it may be as large as it is
        return node.held_total + node.reserved_total + self._unmet(node, group) + amount <= node.limit

    def _amount(self, group: int, num_bytes: int, *, moves: bool) -> int:
        """Bytes a task takes on its machine when it is sent, with its input if that comes from elsewhere.

        At least one, so that "nothing runs" is the same as "nothing is reserved" even for empty tasks.
        """
        arriving = num_bytes if group and moves else 0
        return arriving + self.need(group, num_bytes) or 1

    def _unmet(self, node: NodeBytes, group: int) -> int:
        unmet = 0
        for later in range(group + 1, self.num_groups):  # for every task that is sent: calls would cost most of it
            lane = self.lane[later]
            if lane:
                lacking = lane - node.held[later]
                if lacking > 0:
                    unmet += lacking
                expansion = self.expansion[later]
                if expansion is not None:
                    lacking = int(lane * expansion) - node.reserved[later]
                    if lacking > 0:
                        unmet += lacking
        return unmet

    def queue(self, group: int, num_bytes: int, *, at: int | None) -> None:
        """A task waits with its input on a machine."""
        self._hold(at, group, num_bytes)
        if num_bytes > self.lane[group]:
            self.lane[group] = num_bytes

    def consume(self, group: int, num_bytes: int, *, at: int | None) -> None:
        """The input of a finished task is gone."""
        self._hold(at, group, -num_bytes)

    def _hold(self, at: int | None, group: int, num_bytes: int) -> None:
        if at is not None:  # a name is nowhere, and so is what was on a machine that is lost
            node = self.nodes[at]
            node.held[group] += num_bytes
            node.held_total += num_bytes

    def send(self, task: int, group: int, num_bytes: int, *, at: int, source: int | None, anyway: bool = False) -> bool:
        """A task runs, or is about to, if there is room for it or if it has to; False if it does not."""
        node, amount = self.nodes[at], self._amount(group, num_bytes, moves=source != at)
        if not anyway and not self._has_room(node, group, amount):
            return False
        self.reserved[task] = Reservation(at, group, amount)
        node.reserved[group] += amount
        node.reserved_total += amount
        return True

    def unsend(self, task: int) -> None:
        """A task came back, or ended: its reservation is free."""
        reservation = self.reserved.pop(task, None)
        if reservation is None:
            return
        node = self.nodes.get(reservation.node)
        if node is not None:
            node.reserved[reservation.group] -= reservation.num_bytes
            node.reserved_total -= reservation.num_bytes


def _fading_maximum(before: float | None, seen: float) -> float:
    if before is None:
        return seen
    faded = before * FORGET
    return faded if faded > seen else seen
