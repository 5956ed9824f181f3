"""What is computed again instead of being recorded: a trace from the event log, a document found by its id.

    python -m benchmarks.observation_replayed

`trace`  events of the log a second of CPU, from the file to the bytes of the trace; goal 15,000. The run has 6,000
         tasks in each of three stages that do nothing.
`find`   bytes a second of CPU that an id is looked for in, over those of `grep -F -c` on the same files, in turns; goal
         0.5. There are eight files; the id is in the last line of the last.
"""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.record import header

from gristmill.backends.chrome_trace import chrome_trace
from gristmill.backends.local import LocalExecutor
from gristmill.backends.schedules import RunSchedule
from gristmill.engine.spans import Span
from gristmill.pipeline import Pipeline
from gristmill.pipeline.find_document import find_id
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import FileGroupTask

TASKS = 6_000
TURNS = 5
FILES, MEGABYTES = 8, 400


class _Nothing(ProcessingStage[FileGroupTask, FileGroupTask]):
    """Hands a task on. Not fused, so that each stage is a group and has tasks of its own."""

    fusible = False

    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, task: FileGroupTask) -> FileGroupTask:
        return task


def measure_trace() -> dict[str, object]:
    """How many events a second become a trace."""
    with tempfile.TemporaryDirectory() as place:
        stages = [_Nothing(name) for name in "abc"]
        tasks = [FileGroupTask("t", [f"{n}"], partition_name=f"part-{n:05d}") for n in range(TASKS)]
        run = Path(place) / "run"
        Pipeline("trace", stages=stages).run(LocalExecutor(num_workers=0), tasks, checkpoint_path=run, quiet=True)
        rates, num_bytes = [], 0
        for _ in range(TURNS):
            schedule = RunSchedule(run)
            before = time.process_time()
            num_bytes = sum(map(len, chrome_trace(schedule, schedule.groups, name="run")))
            rates.append(schedule.num_events / (time.process_time() - before))
        spans = sum(isinstance(shown, Span) and shown.kind == "task" for shown in RunSchedule(run))
    if spans != 3 * TASKS:
        raise RuntimeError(f"expected {3 * TASKS} tasks in the trace; got {spans}")
    return {
        "events": schedule.num_events,
        "trace_bytes": num_bytes,
        "events_per_cpu_s": round(statistics.median(rates)),
        "goal": 15_000,
    }


def measure_find() -> dict[str, object]:
    """How fast an id is found, against grep."""
    grep = shutil.which("grep")
    if grep is None:
        return {"skipped": "there is no grep here"}
    with tempfile.TemporaryDirectory() as place:
        paths = [Path(place) / f"{n}.jsonl" for n in range(FILES)]
        number = 0
        for path in paths:
            first, number = number, _write(path, number)
        wanted = f"doc-{number - 1:09d}"
        num_bytes = sum(path.stat().st_size for path in paths)
        ratios, ours = [], []
        for _ in range(TURNS):
            before = os.times()
            subprocess.run([grep, "-F", "-c", json.dumps(wanted), *paths], check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            theirs_s = after.children_user + after.children_system - before.children_user - before.children_system
            began = time.process_time()
            found = find_id([str(path) for path in paths], wanted)
            ours_s = time.process_time() - began
            if [one.line for one in found] != [number - first]:
                raise RuntimeError(f"expected the document in line {number - first}; got {found}")
            ratios.append(theirs_s / ours_s)
            ours.append(num_bytes / ours_s)
        return {
            "bytes": num_bytes,
            "gb_per_cpu_s": round(statistics.median(ours) / 1e9, 2),
            "over_grep": round(statistics.median(ratios), 2),
            "goal": 0.5,
        }


def _write(path: Path, number: int) -> int:
    text = "many words that somebody has written, which say little but take room on a disk; " * 30
    with path.open("w") as file:
        while file.tell() < (MEGABYTES << 20) // FILES:
            for _ in range(1_000):
                file.write(json.dumps({"id": f"doc-{number:09d}", "text": text[: 400 + number % 2_000]}) + "\n")
                number += 1
    return number


def measure() -> dict[str, object]:
    """Both."""
    return {"trace": measure_trace(), "find": measure_find()}


if __name__ == "__main__":
    print(json.dumps(header()))
    print(json.dumps(measure(), indent=1))
