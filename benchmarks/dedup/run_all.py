"""Deduplication against the peers, on the same data, in the same run, with the truth known.

    make bench-dedup                                       (makes the peers' environments first)
    python -m benchmarks.dedup.run_all [--documents 20000] [--only exact,fuzzy-14x8] [--rounds 1] [--record]
    python -m benchmarks.dedup.run_all --forms --documents 200000 --words 150 --rounds 5     (stages beside workflows)

The corpus has copies and near-duplicates whose similarity is known. Every side reads JSONL and writes the JSONL that
stays. Printed for each: seconds from its start to its end, imports included, processor seconds and peak memory of the
process tree, and what was found of the truth, which is looked at here, when the side has ended. On a machine that is
busy with other things only processor seconds can be compared. Ours runs once on a few documents before: the first run
on a machine compiles. Starting takes each side half a second or more: 200,000 documents and above make that small.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
from pathlib import Path

from benchmarks.dedup.corpus import make_corpus
from benchmarks.process_tree import TreeUse, measure
from benchmarks.record import ROOT, header, record

HERE = ROOT / "benchmarks" / "dedup"
DATA = ROOT / "benchmarks" / "data" / "dedup"
OUT = ROOT / "benchmarks" / "out" / "dedup"
VENVS = ROOT / "benchmarks" / "out" / "venvs"

KINDS = ("hashing", "exact", "exact-stage", "exact-behind", "fuzzy", "fuzzy-stage", "fuzzy-behind", "fuzzy-14x8")
COMPARED_FORMS = ("gristmill exact", "gristmill exact-stage", "gristmill fuzzy", "gristmill fuzzy-stage")
FORM_MARK = 1.05  # a stage costs at most so many times what the workflow costs

Row = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--only", default="", help="parts of the names of the sides to run")
    parser.add_argument("--forms", action="store_true", help="only the workflows and the stages that do the same")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--venvs", type=Path, default=VENVS)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    began = header()
    source = DATA / f"{options.documents}x{options.words}"
    if not source.exists():
        make_corpus(source, options.documents, options.words, 8)
    truth = json.loads(source.with_suffix(".truth.json").read_text())
    sides = {
        name: command
        for name, command in _sides(options.venvs).items()
        if (name in COMPARED_FORMS if options.forms else any(part in name for part in options.only.split(",")))
    }
    _warm_up(sides)
    # Side after side in every round, so that what else the machine does meets them all; and another first each time,
    # because memory that the side before has just given back is cheaper than what a virtual machine must ask for.
    rounds: list[dict[str, Row]] = []
    for number in range(options.rounds):
        turned = [*sides][number % len(sides) :] + [*sides][: number % len(sides)]
        rounds.append({name: _round(sides[name], source, truth) for name in turned})
        used = ", ".join(f"{name} {row['cpu_s']:.2f}" for name, row in rounds[-1].items())
        print(f"round {number + 1}, cpu_s: {used}", flush=True)
    rows = {name: _median([own[name] for own in rounds]) for name in sides}
    for name, row in rows.items():
        print(f"{name:<22} {row}", flush=True)
    ratios = _ratios(rounds)
    for name, ratio in ratios.items():
        marked = name.endswith("cpu_s") and "-stage /" in name
        print(f"{name:<48} {ratio:8.2f}" + (f"  (mark: at most {FORM_MARK})" if marked else ""))
    record("dedup", began, {"documents": options.documents, "rows": rows, "ratios": ratios})


def _ratios(rounds: list[dict[str, Row]]) -> dict[str, float]:
    """How many times a peer's cost ours is: the median of the rounds' ratios."""
    pairs = [
        ("datatrove exact", "gristmill exact"),
        ("polars exact", "gristmill exact"),
        ("duckdb exact", "gristmill exact"),
        ("datatrove fuzzy", "gristmill fuzzy-14x8"),
        *(
            (f"gristmill {kind}-{form}", f"gristmill {kind}")
            for kind in ("exact", "fuzzy")
            for form in ("stage", "behind")
        ),
    ]
    return {
        f"{peer} / {ours}, {unit}": round(statistics.median(own[peer][unit] / own[ours][unit] for own in rounds), 2)
        for peer, ours in pairs
        if peer in rounds[0] and ours in rounds[0]
        for unit in ("seconds", "cpu_s")
    }


def _sides(venvs: Path) -> dict[str, list[str]]:
    ours = [sys.executable, "-m", "benchmarks.dedup.with_gristmill"]
    datatrove = [str(venvs / "datatrove" / "bin" / "python"), str(HERE / "with_datatrove.py")]
    frames = [str(venvs / "frames" / "bin" / "python"), str(HERE / "with_frames.py")]
    return {
        **{f"gristmill {kind}": [*ours, kind] for kind in KINDS},
        "rensa hashing": [*frames, "rensa"],
        "polars exact": [*frames, "polars"],
        "duckdb exact": [*frames, "duckdb"],
        "datatrove exact": [*datatrove, "exact"],
        "datatrove fuzzy": [*datatrove, "fuzzy"],
    }


def _warm_up(sides: dict[str, list[str]]) -> None:
    """Compile kernels and modules, as the first run on a machine does and installing did for the peers."""
    few = DATA / "100x100"
    if not few.exists():
        make_corpus(few, 100, 100, 2)
    for name, command in sides.items():
        if name.startswith("gristmill"):
            _measure(command, few)


def _measure(command: list[str], source: Path) -> tuple[TreeUse, dict[str, str | float]]:
    """Run one side; return what it used and what it says."""
    shutil.rmtree(OUT / "run", ignore_errors=True)
    (OUT / "run").mkdir(parents=True)
    report = OUT / "report.json"
    # Modules of installed packages are compiled; ours must be allowed to be, wherever this runs.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    use = measure([*command, str(source), str(OUT / "run"), str(report)], env)
    return use, json.loads(report.read_text())


def _round(command: list[str], source: Path, truth: dict[str, list[list[float]]]) -> Row:
    use, told = _measure(command, source)
    row: Row = {"seconds": use.wall_s, "cpu_s": use.cpu_s, "peak_mb": use.peak_bytes / 10**6}
    row |= {key: float(value) for key, value in told.items() if key.startswith("docs_per_s")}
    return row | (_against_truth(_kept(str(told["kept"])), truth) if "kept" in told else {})


def _median(rows: list[Row]) -> Row:
    return {key: round(statistics.median(row[key] for row in rows), 4) for key in rows[0]}


def _kept(directory: str) -> set[str]:
    return {json.loads(line)["id"] for file in Path(directory).glob("*.jsonl") for line in file.open()}


def _against_truth(kept: set[str], truth: dict[str, list[list[float]]]) -> Row:
    """Shares of pairs that lost a document, by similarity; and documents removed that are nobody's duplicate."""

    def found(pairs: list[list[float]]) -> float:
        lost = sum(not kept.issuperset({str(int(pair[0])), str(int(pair[1]))}) for pair in pairs)
        return round(lost / max(1, len(pairs)), 4)

    # A document in several pairs may go for the sake of one of them: below the threshold only lonely pairs tell.
    times: dict[int, int] = {}
    for pair in [*truth["copies"], *truth["pairs"]]:
        for end in pair[:2]:
            times[int(end)] = times.get(int(end), 0) + 1
    lonely = [pair for pair in truth["pairs"] if times[int(pair[0])] == times[int(pair[1])] == 1]
    partnered = {str(end) for end in times}
    everything = {str(number) for number in range(int(truth["documents"]))}  # type: ignore[call-overload]
    return {
        "kept": len(kept),
        "copies_found": found(truth["copies"]),
        "found_at_0.82_and_above": found([pair for pair in truth["pairs"] if pair[2] >= 0.82]),
        "removed_below_0.78": found([pair for pair in lonely if pair[2] < 0.78]),
        "removed_without_partner": len(everything - kept - partnered),
    }


if __name__ == "__main__":
    main()
