"""The life of one task in one group. No other file may change a task's state.

             SENT                FINISHED
    QUEUED ─────────▶ ASSIGNED ───────────▶ DONE
       ▲                 │
       └─────────────────┘ RAISED, WORKER_LOST, RECALLED

There is no failed state: a task that keeps failing is handled with more and more care (`policies/retry.py`), and at the
last step its documents are quarantined, which finishes it. So every task ends in DONE, and nothing is lost in silence.
"""

from enum import IntEnum

import msgspec

from gristmill.engine.policies.retry import FRESH, Trial
from gristmill.errors import EngineBug

# IntEnum because an Enum's hash is computed in Python, and every task changes state twice in every stage.
State = IntEnum("State", "QUEUED ASSIGNED DONE")
Change = IntEnum("Change", "SENT FINISHED RAISED WORKER_LOST RECALLED")

TRANSITIONS: dict[tuple[State, Change], State] = {
    (State.QUEUED, Change.SENT): State.ASSIGNED,
    (State.ASSIGNED, Change.FINISHED): State.DONE,
    (State.ASSIGNED, Change.RAISED): State.QUEUED,
    (State.ASSIGNED, Change.WORKER_LOST): State.QUEUED,
    (State.ASSIGNED, Change.RECALLED): State.QUEUED,
}


class TaskRecord(msgspec.Struct, eq=False):
    """One task in one group. `id` is new for every attempt; `item_id` is what stays."""

    id: int
    root: int
    group: int
    item_id: str
    num_bytes: int
    payload: object
    queued_at: float
    state: State = State.QUEUED
    trial: Trial = FRESH
    received: int = 0  # outputs taken over so far; a streaming task that is done again repeats them
    num_items: int = 1
    call: int = -1  # which call of its worker it is in: the number of that call's first task
    last_worker: int = -1
    shadow: int = -1  # the worker that runs it as well, if it has been given to another
    path_s: float = 0.0  # seconds of work on the way here
    node: int | None = None  # the machine its input is on; a source partition is a name, and is nowhere

    def change(self, change: Change) -> None:
        """Go on to the next state, or raise EngineBug if that cannot happen."""
        try:
            self.state = TRANSITIONS[self.state, change]
        except KeyError:
            raise EngineBug(f"task {self.item_id}: {change.name} while {self.state.name}") from None
