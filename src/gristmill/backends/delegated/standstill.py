"""`Standstill`: says so when a run has not moved for too long, and what can be known about why.

The other engine does not tell what it waits for. Workers speak for themselves (`GroupWorker`), so this is for those who
cannot: a worker that was never started for want of cores, one that was stopped, one whose library keeps the interpreter
to itself. What is known then is which tasks were begun, which groups have no worker yet, and what the cluster has free.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from gristmill.backends.delegated.registrar import News
from gristmill.engine.plan import Group, Plan

AGAIN = 2.0  # times as long before it is said again, as for workers
GRACE = 1.25  # times the patience while workers have work: they can say more about it
SHOWN = 3  # tasks


class Standstill:
    """Looks at one run. `running` asks which tasks are at work, `free` what the cluster has; both only when needed."""

    def __init__(
        self,
        plan: Plan,
        patience_s: float,
        running: Callable[[], Mapping[int, list[str]]],
        free: Callable[[], str],
    ) -> None:
        self._plan = plan
        self._patience_s = patience_s
        self._running = running
        self._free = free
        self._moved_at: float | None = None
        self._told_at_s = 0.0
        self._last: tuple[object, object] = ({}, {})

    def words(self, news: News, now: float) -> list[str]:
        """What to say after this news, if none of it means progress."""
        state = (dict(news.workers), dict(news.busy))
        if self._moved_at is None or news.receipts or news.lost or news.messages or state != self._last:
            self._moved_at, self._told_at_s, self._last = now, 0.0, state
            return []
        waited_s = now - self._moved_at
        patience = self._patience_s * (GRACE if any(news.busy.values()) else 1.0)
        if waited_s < max(patience, AGAIN * self._told_at_s):
            return []
        self._told_at_s = waited_s
        return [f"nothing has moved for {waited_s:.0f} s: {self._why(news)}"]

    def _why(self, news: News) -> str:
        at_work = [
            f"{self._plan.groups[index].name} has {len(items)} task{'s' * (len(items) > 1)} at work ({_some(items)})"
            for index, items in sorted(self._running().items())
        ]
        if at_work:  # later groups may have no worker because nothing has reached them yet
            return "; ".join(at_work)
        absent = [group for group in self._plan.groups if not news.workers.get(group.index)]
        if not absent:
            return "the engine neither begins a task nor ends"
        wanted = [f"no worker of {group.name} has become ready ({_asked(group)})" for group in absent]
        return f"{'; '.join(wanted)}; the cluster may lack what they ask for: {self._free()}"


def _some(items: list[str]) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(sorted(items)[:SHOWN]) + more


def _asked(group: Group) -> str:
    need = group.resources
    each = f"{need.cpus:g} CPUs" + (f" and {need.gpus:g} GPUs" if need.gpus else "")
    return f"each asks for {each}"


def free_resources() -> str:
    """What the Ray cluster has, and how much of it is free."""
    ray: Any = importlib.import_module("ray")  # whose functions here have no types
    there, free = ray.cluster_resources(), ray.available_resources()
    kinds = [kind for kind in ("CPU", "GPU") if there.get(kind)]
    return ", ".join(f"{free.get(kind, 0.0):g} of {there[kind]:g} {kind}s are free" for kind in kinds)
