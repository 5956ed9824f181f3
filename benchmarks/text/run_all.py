"""Filtering against the peers, on the same data, in the same run.

    make bench-text                                        (makes the peers' environments first)
    python -m benchmarks.text.run_all [--megabytes 200] [--peer-megabytes 50] [--rounds 3] [--record]

Each program reads the corpus as JSONL, filters, writes JSONL, with two workers. The sides take turns, so that a slow
phase of the machine meets all of them. Start-up is measured on a corpus of a few documents a shard; a peer's is not
counted, gristmill's is, and ratios without it on either side are printed too. What is compared is MB/s: once running, a
peer is as fast on 50 MB of the corpus as on 200, where it would take a quarter of an hour a round.
"""

import argparse
import compileall
import itertools
import json
import shutil
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.corpus import DATA, SHARDS, corpus, manifest
from benchmarks.process_tree import TreeUse, measure
from benchmarks.record import ROOT, header, record

HERE = ROOT / "benchmarks" / "text"
OUT = ROOT / "benchmarks" / "out"
FEW = 20  # one peer ends with an error when all documents of a file are dropped


@dataclass
class Side:
    """One program on one rule set, and what its runs gave."""

    name: str
    command: Sequence[str]
    is_peer: bool = False
    start_up_s: float = 0.0
    seconds: list[float] = field(default_factory=list)  # start-up included
    uses: list[TreeUse] = field(default_factory=list)
    kept: int = 0

    def run(self, source: Path) -> float:
        """Run once and return the seconds the program says it took."""
        output, report = OUT / "text" / self.name.replace(" ", "-"), OUT / "text" / "report.json"
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        self.uses.append(measure([*self.command, str(source), str(output), str(report)]))
        told = json.loads(report.read_text())
        self.kept = told["kept"]
        return float(told["run_s"])


def main() -> None:
    """Run every side in turn and print a row each, then the ratios."""
    options = _options()
    began = header()
    # As pip did with the peers' packages: else, where Python may not write bytecode, every process compiles ours anew.
    compileall.compile_dir(ROOT / "src" / "gristmill", quiet=1)
    sources = {False: corpus(options.megabytes), True: corpus(options.peer_megabytes)}
    sides = _sides(options.only)
    tiny = _few_documents_a_shard(sources[True])
    for side in sides:
        side.run(tiny if side.is_peer else sources[False])  # also compiles, fills caches
        side.start_up_s = side.run(tiny)
        side.uses.clear()
    for number in range(options.rounds):
        for side in sides:
            if number and side.is_peer and sum(side.seconds) > options.patience_s:
                continue  # a peer that takes minutes has been heard
            side.seconds.append(side.run(sources[side.is_peer]))
            print(f"{side.name}: {side.seconds[-1]:.2f} s", file=sys.stderr, flush=True)
    rows = [_row(side, json.loads(manifest(sources[side.is_peer]).read_text())) for side in sides]
    headline = {row["side"]: row["mb_per_s"] for row in rows}
    running = {row["side"]: row["mb_per_s_once_running"] for row in rows}
    ratios = {"ratios": _ratios(headline), "ratios_once_running": _ratios(running)}
    record("text", began, {"rows": rows, **ratios})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200, help="what gristmill filters")
    parser.add_argument("--peer-megabytes", type=int, default=50, help="what the peers filter")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience-s", type=float, default=60.0, help="a slower peer runs once")
    parser.add_argument("--only", default="", help="sides whose names begin so, comma between")
    parser.add_argument("--record", action="store_true")
    return parser.parse_args()


def _sides(only: str) -> list[Side]:
    ours = [sys.executable, str(HERE / "with_gristmill.py")]
    sides = [
        Side("gristmill read and write", [*ours, "passthrough"]),
        Side("gristmill english-heuristics", [*ours, "english-heuristics"]),
        Side("gristmill gopher and c4", [*ours, str(HERE / "gopher-c4.yaml")]),
        Side(
            "nemo-curator heuristics",
            [_python("nemo-curator"), str(HERE / "with_nemo_curator.py")],
            is_peer=True,
        ),
        Side("datatrove gopher and c4", [_python("datatrove"), str(HERE / "with_datatrove.py")], is_peer=True),
    ]
    chosen = [side for side in sides if any(side.name.startswith(name) for name in only.split(","))]
    for side in chosen:
        if not Path(side.command[0]).exists():
            raise SystemExit(
                f"{side.name}: expected {side.command[0]}; run `make bench-peers`, or use --only gristmill"
            )
    return chosen


def _python(peer: str) -> str:
    return str(OUT / "venvs" / peer / "bin" / "python")


def _few_documents_a_shard(source: Path) -> Path:
    tiny = DATA / "corpus-tiny"
    tiny.mkdir(exist_ok=True)
    for shard in range(SHARDS):
        name = f"{shard:05d}.jsonl"
        with (source / name).open("rb") as whole:
            (tiny / name).write_bytes(b"".join(itertools.islice(whole, FEW)))
    return tiny


def _row(side: Side, about: dict[str, int]) -> dict[str, object]:
    seconds = statistics.median(side.seconds)
    running = max(1e-3, seconds - side.start_up_s)
    counted = running if side.is_peer else seconds
    return {
        "side": side.name,
        "megabytes": round(about["bytes"] / 1e6),
        "seconds": round(seconds, 2),
        "start_up_s": round(side.start_up_s, 2),
        "start_up_is_counted": not side.is_peer,
        "mb_per_s": round(about["bytes"] / 1e6 / counted, 2),
        "mb_per_s_once_running": round(about["bytes"] / 1e6 / running, 2),
        "documents_per_s": round(about["documents"] / counted),
        "cpu_s": round(statistics.median(use.cpu_s for use in side.uses), 2),
        "peak_mb": round(max(use.peak_bytes for use in side.uses) / 1e6),
        "kept_share": round(side.kept / about["documents"], 4),
        "kept": side.kept,
        "rounds": len(side.seconds),
    }


def _ratios(speed: dict[str, float]) -> dict[str, float]:
    pairs = {
        "english-heuristics to nemo-curator": ("gristmill english-heuristics", "nemo-curator heuristics"),
        "gopher and c4 to datatrove": ("gristmill gopher and c4", "datatrove gopher and c4"),
        "read and write to english-heuristics": ("gristmill read and write", "gristmill english-heuristics"),
    }
    return {name: round(speed[a] / speed[b], 2) for name, (a, b) in pairs.items() if a in speed and b in speed}


if __name__ == "__main__":
    main()
