"""How long the smallest useful program takes, from process start to exit, beside a bare import of pyarrow.

    python -m benchmarks.hello [--record]

The two take turns, so that what else the machine does falls on both.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.record import header, record

ROUNDS = 7
HELLO = """
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter

if __name__ == "__main__":
    Pipeline("hello").add_stage(JsonlReader("in")).add_stage(JsonlWriter("out")).run()
"""
YARDSTICK = "import pyarrow"


def main() -> None:
    """Time both programs in turn and print the ratio."""
    began = header()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "in").mkdir()
        (work / "in" / "hello.jsonl").write_text('{"text": "hello, world"}\n')
        (work / "hello.py").write_text(HELLO)
        hello, yardstick = [], []
        for _ in range(ROUNDS):
            yardstick.append(_seconds([sys.executable, "-c", YARDSTICK], work))
            shutil.rmtree(work / "out", ignore_errors=True)  # or it would find itself finished
            hello.append(_seconds([sys.executable, "hello.py"], work))
    ours, theirs = statistics.median(hello), statistics.median(yardstick)
    result: dict[str, object] = {
        "hello_s": round(ours, 3),
        "import_pyarrow_s": round(theirs, 3),
        "ratio": round(ours / theirs, 2),
        "best_ratio": round(min(hello) / min(yardstick), 2),
        "rounds": ROUNDS,
    }
    record("hello", began, result)


def _seconds(command: list[str], work: Path) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=work, check=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
