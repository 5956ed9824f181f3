"""How much a run writes down about itself over time: bytes of `metrics.jsonl` an hour, and what it costs.

The snapshots are made up, the writer and the reader are the real ones: 40 stages that all read, drop and fail, 20,000
documents a second, in 5, 10 and 40 groups. Bytes in the first hour are the most: a line is due every second at first.
"""

import random
import time

from gristmill.metrics.history import read_history
from gristmill.metrics.history_writer import HistoryWriter, interval_s
from gristmill.metrics.node_sample import NodeSample
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot

STAGES, RATE, HOURS = 40, 20_000, 10
SHARES = {"useful": 50, "setup": 1, "starved": 5, "blocked": 2, "fragmented": 1, "wasted": 0.1, "scheduler": 0.3}


def measure() -> dict[str, object]:
    """Bytes and CPU seconds of a run of ten hours, by how many groups its 40 stages are in."""
    return {f"{groups} groups": _run(groups) for groups in (5, 10, 40)}


def _run(groups: int) -> dict[str, float]:
    chance, writer, pieces, now = random.Random(1), HistoryWriter(), [], 0.0
    documents, first_hour, writing_s = [0] * STAGES, 0, 0.0
    while now <= HOURS * 3600:
        snapshot = _snapshot(now, documents, groups, chance, interval_s(now))
        began = time.process_time()
        pieces.append(writer.lines(snapshot))
        writing_s += time.process_time() - began
        first_hour += len(pieces[-1]) if now <= 3600 else 0
        now += interval_s(now)
    content = b"".join(pieces)
    began = time.process_time()
    history = read_history(content)
    return {
        "lines": len(history),
        "mb_an_hour": round(len(content) / 1e6 / HOURS, 3),
        "mb_in_the_first_hour": round(first_hour / 1e6, 3),
        "write_ms_a_line": round(writing_s / len(pieces) * 1000, 3),
        "read_s": round(time.process_time() - began, 3),
    }


def _snapshot(now: float, documents: list[int], groups: int, chance: random.Random, step: float) -> RunSnapshot:
    stages, out = [], 0
    for number in range(STAGES):
        group = number * groups // STAGES
        is_first = number == 0 or group != (number - 1) * groups // STAGES
        arrived = out - (chance.randrange(3000) if is_first else 0)  # what waits between two groups
        if number == 0:
            arrived = documents[0] + int(RATE * step * chance.uniform(0.8, 1.2))
        came = documents[number] = max(documents[number], arrived)
        out = came - came // 50
        busy = 20 - chance.randrange(3)
        stages.append(
            StageSnapshot(
                f"stage_{number}",
                group,
                documents_in=came,
                documents_out=out,
                dropped=came // 50,
                quarantined=came // 100_000,
                process_s=came * 1e-4,
                worker_states={"starting": 0, "idle": 21 - busy, "busy": busy, "blocked": 0, "draining": 0},
                queued_tasks=chance.randrange(40),
                memory_bytes=int(4e9 + now * 1e4),
                largest_worker_bytes=300_000_000,
                reasons={"rule": came // 50},
            )
        )
    read, memory = documents[0], int(8e9 * chance.uniform(0.9, 1.1))
    return RunSnapshot(
        "demo", "running", now, int(now), 100_000, read, documents[-1], read // 2, 0, 0, read * 3000, 10**13, memory,
        16 * 10**9, chance.uniform(1e3, 1e5), tuple(stages), made_at=1.7e9 + now, bound_s=now * 0.8,
        resource_seconds={"cpu": {share: now * part for share, part in SHARES.items()}},
        data_in_flight_bytes=int(1e9 * chance.uniform(0.5, 1)),
        nodes=(NodeSample("a", 0.0, int(3e9 * chance.uniform(0.9, 1.1)), 16 * 10**9, now * 40, 64),),
    )  # fmt: skip
