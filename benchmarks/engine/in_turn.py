"""What an event costs the schedulers of two trees, measured in turn.

    python -m benchmarks.engine.in_turn ../before [--workers 1000] [--rounds 6]

The other tree is a checkout with the same simulation, such as a worktree of an earlier commit. A process of each
records the events of row B14 and plays them to its own scheduler, 500 calls at a time, and they take turns at that:
what a noisy machine does to one slice it does to its neighbour, so a difference of two per cent shows. Whole
replays, one after the other, differ by 15 % from themselves.
"""

import argparse
import gc
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.record import ROOT, header

SLICE = 500  # calls


class Side:
    """A process that replays in one of the trees."""

    def __init__(self, tree: Path, workers: int, rounds: int) -> None:
        # The script is this file in both, because the other tree may not have it.
        command = [sys.executable, __file__, "--replay", "--workers", str(workers), "--rounds", str(rounds), "-"]
        paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
        pipe = subprocess.PIPE
        env = {**os.environ, "PYTHONPATH": paths}
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, text=True, bufsize=1)

    def hear(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError(f"the replay ended with exit code {self._process.wait()}")
        return line.strip()

    def go(self) -> float:
        """Let it handle the next slice; seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        return float(self.hear())


def main() -> None:
    """Replay in both trees, slice by slice, and print how they compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="the other tree")
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--replay", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        replay(options.workers, options.rounds)
        return
    print(" ".join(f"{name}={value}" for name, value in header().items() if name != "packages"))
    sides = [Side(tree, options.workers, options.rounds) for tree in (Path(options.before).resolve(), ROOT)]
    before_s: list[float] = []
    now_s: list[float] = []
    for _ in range(options.rounds):
        counts = {int(side.hear()) for side in sides}
        if len(counts) > 1:
            print(f"the schedulers were told different events: {sorted(counts)} slices")
        for number in range(min(counts)):
            for side, spent in list(zip(sides, (before_s, now_s), strict=True))[:: -1 if number % 2 else 1]:
                spent.append(side.go())
    calls = len(now_s) * SLICE
    ratio = statistics.median(now / before for now, before in zip(now_s, before_s, strict=True))
    print(f"{options.workers:,} workers, {calls:,} calls each")
    print(f"before {sum(before_s) / calls * 1e6:.1f} µs a call, now {sum(now_s) / calls * 1e6:.1f}")
    print(f"now / before: {ratio:.3f} (median of slices), {sum(now_s) / sum(before_s):.3f} (of sums)")


def replay(workers: int, rounds: int) -> None:
    """Record, then handle a slice for every line of standard input."""
    from benchmarks.engine.scale import recorded

    from gristmill.backends.simulated.simulation import Simulation

    spec, calls, warm_up = recorded(workers)
    slices = [calls[at : at + SLICE] for at in range(warm_up, len(calls) - SLICE + 1, SLICE)]
    for _ in range(rounds):
        scheduler = Simulation(spec).scheduler
        for events in calls[:warm_up]:
            scheduler.handle(*events)
        gc.collect()
        gc.freeze()
        gc.disable()
        print(len(slices), flush=True)
        for part in slices:
            sys.stdin.readline()
            began = time.perf_counter()
            for events in part:
                scheduler.handle(*events)
            print(time.perf_counter() - began, flush=True)
        gc.enable()
        gc.unfreeze()


if __name__ == "__main__":
    main()
