"""Two trees in turn: whole runs of this one and of another checkout, such as a worktree of an earlier commit.

    git worktree add ../before d1b40ce
    python -m benchmarks.in_turn ../before [--only hello,fuzzy] [--rounds 7] [--documents 2000000]

For each program: processor seconds of all its processes and seconds by the clock, now over before, as the median of the
ratios of rounds. Sides take turns and the first to run changes, because seconds cannot be compared with those of
another hour. One run of each comes before, for what compiles once. Both sides have bytecode, and kernels as their tree
has them: run `make setup` here, or every worker loads the compiler.
"""

import argparse
import compileall
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import corpus
from benchmarks.dedup.corpus import make_corpus
from benchmarks.process_tree import TreeUse, measure
from benchmarks.record import ROOT, header

MARK = 1.05
MEGABYTES, DOCUMENTS, WORDS = 200, 100_000, 150
DATA = ROOT / "benchmarks" / "data"
PROGRAMS = {
    "hello": """
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter

Pipeline("hello").add_stage(JsonlReader("hello")).add_stage(JsonlWriter("out")).run()
""",
    "noop_tasks": """
from benchmarks.noop_tasks import _gristmill

_gristmill()
""",
    "large_file": """
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter

stages = [JsonlReader("large.jsonl"), ScoreFilter(WordCountFilter(min_words=100)), JsonlWriter("out")]
Pipeline("large_file", stages=stages).run(LocalExecutor(num_workers=2))
""",
    "english-heuristics": "recipe english-heuristics",
    "gopher-c4": f"recipe {ROOT / 'benchmarks' / 'text' / 'gopher-c4.yaml'}",
    "exact": "deduplicate",
    "fuzzy": "deduplicate",
}


def main() -> None:
    """Run every program in both trees and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other tree")
    parser.add_argument("--only", default="", help="names of programs, comma between")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="to deduplicate")
    options = parser.parse_args()
    chosen = [name for name in PROGRAMS if not options.only or name in options.only.split(",")]
    print(" ".join(f"{name}={value}" for name, value in header().items() if name != "packages"))
    trees = [options.before.resolve(), ROOT]
    compileall.compile_dir(trees[0] / "src", quiet=2)
    missed, duplicated = 0, DATA / "dedup" / f"{options.documents}x{WORDS}"
    if {"exact", "fuzzy"} & {*chosen} and not duplicated.exists():
        make_corpus(duplicated, options.documents, WORDS, 8)
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DATA) as place:
        work = Path(place)
        _prepare(work, chosen)
        for name in chosen:
            for tree in trees:
                _run(name, tree, work, duplicated)
            pairs: list[tuple[TreeUse, ...]] = []
            for number in range(options.rounds):
                order = trees if number % 2 else trees[::-1]
                used = {tree: _run(name, tree, work, duplicated) for tree in order}
                pairs.append(tuple(used[tree] for tree in trees))
            ratios = {
                "processor": statistics.median(now.cpu_s / before.cpu_s for before, now in pairs),
                "clock": statistics.median(now.wall_s / before.wall_s for before, now in pairs),
            }
            missed += ratios["processor"] > MARK
            told = ", ".join(f"{what} {ratio:.3f}" for what, ratio in ratios.items())
            seconds = statistics.median(before.cpu_s for before, _ in pairs)
            print(f"{name:<20} {told} (before: {seconds:.2f} s of processors, {len(pairs)} rounds)", flush=True)
    print(f"{missed} of {len(chosen)} above {MARK}")


def _prepare(work: Path, chosen: list[str]) -> None:
    (work / "hello").mkdir()
    (work / "hello" / "hello.jsonl").write_text('{"text": "hello, world"}\n')
    for name in chosen:
        (work / f"{name}.py").write_text(PROGRAMS[name])
    if "large_file" in chosen:
        with (work / "large.jsonl").open("wb") as file:
            for part in sorted(corpus(MEGABYTES).glob("*.jsonl")) * 2:
                file.write(part.read_bytes())


def _run(name: str, tree: Path, work: Path, duplicated: Path) -> TreeUse:
    shutil.rmtree(work / "out", ignore_errors=True)
    kind, _, recipe = PROGRAMS[name].partition(" ")
    if kind == "recipe":
        program = [str(tree / "benchmarks" / "text" / "with_gristmill.py"), recipe, str(corpus(MEGABYTES))]
        program += [str(work / "out"), str(work / "told.json")]
    elif kind == "deduplicate":
        program = ["-m", "benchmarks.dedup.with_gristmill", name, str(duplicated)]
        program += [str(work / "out"), str(work / "told.json")]
    else:
        program = [f"{name}.py"]
    # No run profits from one before it, and modules are loaded as pip has installed them.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)]), "GRISTMILL_PROFILES": "off"}
    return measure([sys.executable, *program], env, cwd=work, quiet=True)


if __name__ == "__main__":
    main()
