"""How large a report is, and how long it takes: of a million documents and thirty rules.

    python -m benchmarks.observation report

The run directory is made for it, with the ledger and observations a run of that size leaves: every rule has
eight documents next to each side of its threshold and sixteen of what it dropped, of 400 characters that take two
bytes each.
"""

import json
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
from benchmarks import process_tree

from gristmill.metrics.observation_files import encode_observations
from gristmill.metrics.observations import Amount, Example, MeasureTally, Nearest, Observations, Sample, Side, Slices
from gristmill.metrics.snapshot import RunSnapshot, StageCounts, StageSnapshot
from gristmill.metrics.tally import tallied
from gristmill.runs.ledger import CommitRecord, encode

DOCUMENTS = 1_000_000
RULES = 30
PARTITIONS = 112
MOST_BYTES = 1_000_000
MOST_S = 2.0


def measure() -> dict[str, object]:
    """Size and time of a report, with the time of a Python that imports the command line and does nothing."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        make_run(run, PARTITIONS)
        command = [sys.executable, "-m", "gristmill.cli.main"]
        taken = [_quiet([*command, "report", str(run), "-o", f"{place}/r.html"]) for _ in range(3)]
        nothing = min(_quiet([*command, "--version"]).cpu_s for _ in range(3))
        size = Path(place, "r.html").stat().st_size
    return {
        "documents": DOCUMENTS,
        "rules": RULES,
        "bytes": size,
        "goal_bytes": MOST_BYTES,
        "cpu_s": round(min(use.cpu_s for use in taken), 3),
        "wall_s": round(min(use.wall_s for use in taken), 3),
        "goal_s": MOST_S,
        "cpu_s_of_doing_nothing": round(nothing, 3),
    }


def _quiet(command: list[str]) -> process_tree.TreeUse:
    """What a command uses; what it says is not wanted."""
    return process_tree.measure(["sh", "-c", 'exec "$@" >/dev/null', "sh", *command])


def make_run(run: Path, partitions: int) -> None:
    """Write the directory of a finished run."""
    (run / "measures").mkdir(parents=True)
    names = [f"rule_{number:02d}" for number in range(RULES)]
    stages = [[name, json.dumps({"class": name})] for name in ("jsonl_reader", "filters", "jsonl_writer")]
    inputs = [[f"part-{number:05d}.jsonl", 25_000_000, "1"] for number in range(partitions)]
    header = {"format": 3, "pipeline": "million", "stages": stages, "inputs": inputs, "partitions": partitions}
    (run / "header.json").write_text(json.dumps(header))
    (run / "status.json").write_text(json.dumps(msgspec.to_builtins(snapshot(partitions))))
    random = np.random.default_rng(7)
    each, of_rule = DOCUMENTS // partitions, DOCUMENTS // partitions // 100
    with (run / "ledger.jsonl").open("w") as ledger:
        for number in range(partitions):
            kept = each - of_rule * RULES
            counts = (
                ("jsonl_reader", StageCounts(documents_out=each, read=each, bytes_in=25_000_000, process_s=1.0)),
                ("filters", StageCounts(each, kept, process_s=9.0, dropped=dict.fromkeys(names, of_rule))),
                ("jsonl_writer", StageCounts(kept, written=kept, process_s=1.0)),
            )
            ledger.write(encode(CommitRecord(number, f"part-{number:05d}", (), (), counts, ())))
            seen = observations(random, names, number, each, of_rule)
            (run / "measures" / f"{number:05d}.tally").write_bytes(encode_observations(seen))


def snapshot(partitions: int) -> RunSnapshot:
    """The last words of the run."""
    stages = tuple(StageSnapshot(name, 0) for name in ("jsonl_reader", "filters", "jsonl_writer"))
    done = {
        "partitions_done": partitions,
        "partitions_total": partitions,
        "read": DOCUMENTS,
        "written": 0,
        "dropped": 0,
    }
    rest = dict.fromkeys(("quarantined", "created", "input_bytes_done", "input_bytes_total", "memory_bytes"), 0)
    return RunSnapshot("million", "finished", 60.0, **done, **rest, memory_limit=0, eta_s=None, stages=stages)


def observations(random: np.random.Generator, names: list[str], number: int, each: int, of_rule: int) -> Observations:
    """What one partition records."""

    def examples(many: int, value: float) -> list[Example]:
        keys = random.integers(1 << 62, size=many).tolist()
        return [Example(value, key, f"doc-{key}", f"part-{number:05d}.jsonl", "", f"é{key} " * 19) for key in keys]

    seen = Observations()
    for place, name in enumerate(names):
        kept, refused = random.lognormal(0, 1, each - of_rule * (place + 1)) + 0.5, random.random(of_rule) / 2
        tally = MeasureTally("filters", 1, place, name, "share", 0.5, None, f"0.5 ≤ {name}")
        tally.kept, tally.refused = (
            Side(tallied(values), int(values.sum() * 2**32), float(values.min()), float(values.max()))
            for values in (kept, refused)
        )
        tally.nearest = [Nearest("low", 0.5, examples(8, 0.51), examples(8, 0.49))]
        seen.tallies.append(tally)
        seen.samples.append(Sample("filters", 1, name, examples(16, 0.3)))
    slices = Slices()
    for value in range(50):
        slices.of(f"source-{value}").written.add(Amount(each // 100, each * 10))
        slices.of(f"source-{value}").drop("filters", names[value % RULES], Amount(each // 100, each * 10))
    seen.slices["source"] = slices
    return seen
