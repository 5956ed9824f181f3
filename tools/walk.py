"""Follow one document through the code: which files and functions a run of one document touches.

    python tools/walk.py            the counts, for the whole run and inside the worker
    python tools/walk.py --list     and the files, each with its functions in the order they were first called

A run of one JSON line through a reader, two filters and a writer, in this process (`num_workers=0`), is watched with
`sys.setprofile`. Functions made at import and code of other libraries do not count; what a newcomer has to read does.
What is recorded about documents on the side (`--observe`) is left off: it is read by itself, from `worker/observer.py`.
So is looking for the machine code of kernels, before any document sets out: from `stages/compiled_kernel.py`.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import gristmill
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.compiled_kernel import compile_missing
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import NonAlphaNumericFilter, WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.worker.group_runner import GroupRunner

HOME = str(Path(gristmill.__file__).parent) + "/"
IN_THE_WORKER = GroupRunner.run.__code__
ASIDE = compile_missing.__code__


class Walk:
    """Functions in the order of their first call, by file; and how often the call changed package."""

    def __init__(self) -> None:
        self.functions: dict[str, dict[str, int]] = {}
        self.calls = 0
        self.changes = 0
        self._package = ""

    def step(self, file: str, function: str) -> None:
        """Enter a call."""
        self.calls += 1
        called = self.functions.setdefault(file, {})
        called[function] = called.get(function, 0) + 1
        package = file.partition("/")[0]
        self.changes += package != self._package
        self._package = package

    def __str__(self) -> str:
        functions = sum(map(len, self.functions.values()))
        return (
            f"{len(self.functions)} files, {functions} functions, {self.calls} calls, {self.changes} changes of package"
        )


@contextmanager
def watched(whole: Walk, inside: Walk) -> Iterator[None]:
    """Watch this thread. A call belongs to the worker if a worker's `run` is among its callers."""
    depth = 0  # of frames below the worker's
    aside = 0  # of frames below what is left off

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth, aside
        code = frame.f_code
        if aside or code is ASIDE:
            aside += (event == "call") - (event == "return")
        elif event == "call":
            depth += depth > 0 or code is IN_THE_WORKER
            if code.co_filename.startswith(HOME) and not code.co_name.startswith("<"):
                step = code.co_filename.removeprefix(HOME), code.co_qualname
                whole.step(*step)
                if depth:
                    inside.step(*step)
        elif event == "return" and depth:
            depth -= 1

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def run_one_document(folder: Path) -> None:
    """Take one document from a file to a file."""
    pipeline = Pipeline(
        "walk",
        stages=[
            JsonlReader(str(folder / "in")),
            ScoreFilter(WordCountFilter(1)),
            ScoreFilter(NonAlphaNumericFilter()),
            JsonlWriter(str(folder / "out")),
        ],
    )
    result = pipeline.run(LocalExecutor(num_workers=0), quiet=True, observe="off")
    if result.written != 1:
        raise SystemExit(f"walk: expected 1 document to come out; got {result.written}")


def main() -> None:
    """Print the counts, and the way if asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the files and functions")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    options = parser.parse_args()
    whole, inside = Walk(), Walk()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "second"):  # the first run imports and compiles, which nobody has to read
            place = Path(folder) / name
            (place / "in").mkdir(parents=True)
            (place / "in" / "one.jsonl").write_text(
                json.dumps({"id": "1", "text": "one document of five words"}) + "\n"
            )
            if name == "first":
                run_one_document(place)
        with watched(whole, inside):
            run_one_document(place)
    if options.json:
        counts = {
            name: {"files": len(walk.functions), "functions": sum(map(len, walk.functions.values()))}
            for name, walk in (("run", whole), ("worker", inside))
        }
        print(json.dumps(counts))
        return
    print(f"whole run:         {whole}\ninside the worker: {inside}")
    if options.list:
        for title, walk in (("whole run", whole), ("inside the worker", inside)):
            print(f"\n{title}")
            for file, functions in walk.functions.items():
                print(f"  {file:46} {', '.join(functions)}")


if __name__ == "__main__":
    main()
