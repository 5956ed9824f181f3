"""What a simulated run leaves: `Manifest`, what it has committed, and `SimulationResult`, what it was like."""

import hashlib
from dataclasses import dataclass, field

from gristmill.engine.commands import Commit


@dataclass(frozen=True)
class SimulationResult:
    """How it went. Shares are of all seconds of the scarcest resource, and add up to one."""

    makespan_s: float
    bound_s: float  # no schedule can be faster: the work, the set-up it needs, or one item's way through
    items: int
    events: int
    resource: str
    shares: dict[str, float]  # by engine.account
    workers_started: dict[str, int]
    peak_workers: dict[str, int]
    useful_s: float = 0.0  # of the scarcest resource, by the world's own clock
    setup_s: float = 0.0
    wasted_s: float = 0.0  # of it: attempts that came to nothing
    killed_s: float = 0.0  # of it: how long what was killed had been running
    attempts: int = 0  # calls, those that look for bad documents included
    quarantined: int = 0  # documents
    started_over: int = 0  # source items whose data was on a machine that was lost
    peak_bytes: tuple[int, ...] = ()  # of data on each node
    digest: str = ""  # of everything committed; the same whatever happened on the way
    utilisation: dict[str, float] = field(default_factory=dict)  # useful share of the time of each stage's workers
    starts: tuple[tuple[float, str], ...] = ()  # (second, stage) of every worker

    @property
    def of_bound(self) -> float:
        """The bound over what was reached: 1 is perfect."""
        return self.bound_s / self.makespan_s if self.makespan_s else 1.0

    @property
    def items_per_s(self) -> float:
        return self.items / self.makespan_s if self.makespan_s else 0.0

    @property
    def bottleneck(self) -> str:
        """The stage whose workers had least time to spare."""
        return max(self.utilisation, key=lambda name: self.utilisation[name], default="")


class Manifest:
    """Committed source items and what became of each, so that two runs can be compared."""

    def __init__(self) -> None:
        self.roots: dict[int, tuple[str, ...]] = {}

    def add(self, commit: Commit) -> None:
        """A commit is durable."""
        self.roots[commit.root] = tuple(output.item_id for output in commit.outputs)

    def update(self, earlier: "Manifest") -> None:
        """Take over what an earlier run has committed."""
        self.roots |= earlier.roots

    def digest(self) -> str:
        """A hash of everything, whatever the order it came in."""
        state = hashlib.sha256()
        for root in sorted(self.roots):
            state.update(f"{root}:{','.join(self.roots[root])}\n".encode())
        return state.hexdigest()[:16]
