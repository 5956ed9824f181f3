"""What 1, 100 and 1,000 TB would take: rates measured here, put through the scheduler in virtual time.

    python -m benchmarks.scale [--record]      about ten minutes, and the time to make the corpus once

The recipe `english-heuristics` reads, filters and writes JSON lines with two workers. The processor time of the whole
run, start-up included, is what simulated workers take for every byte of a much larger input, in partitions of 1 GB, on
machines of 64 cores of which one is lost and replaced every hour. Prices are `DOLLARS` for an hour of a core.
"""

import argparse
import dataclasses
import shutil
import sys
import time
from pathlib import Path

from benchmarks.corpus import corpus
from benchmarks.process_tree import measure
from benchmarks.record import ROOT, header, record

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import FaultSpec, NodeSpec, SimulationSpec, StageSpec

RECIPE = "english-heuristics"
OUT = ROOT / "benchmarks" / "out" / "scale"
CORES = 64
DOLLARS = 0.04
PART_BYTES = 1e9
SIZES = ((1, 1), (100, 32), (1000, 128))  # terabytes, machines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    began = header()
    source = corpus(options.megabytes)
    seconds_a_byte, rate = _measured(source)
    rows = [_simulate(*size, seconds_a_byte) for size in SIZES]
    record("scale", began, {"recipe": RECIPE, **rate, "rows": rows})


def _measured(source: Path) -> tuple[float, dict[str, object]]:
    """Run the recipe; return the processor seconds for a byte, and what the whole run took."""
    shutil.rmtree(OUT, ignore_errors=True)
    report = OUT / "report.json"
    OUT.mkdir(parents=True)
    script = ROOT / "benchmarks" / "text" / "with_gristmill.py"
    use = measure([sys.executable, str(script), RECIPE, str(source), str(OUT / "clean"), str(report)])
    num_bytes = sum(path.stat().st_size for path in source.iterdir())
    print(f"{num_bytes / 1e6:,.0f} MB: {use.cpu_s:.2f} s of processors", flush=True)
    return use.cpu_s / num_bytes, {
        "megabytes": round(num_bytes / 1e6),
        "cpu_s": round(use.cpu_s, 3),
        "mb_s_a_core": round(num_bytes / 1e6 / use.cpu_s, 1),
    }


def _simulate(terabytes: float, machines: int, seconds_a_byte: float) -> dict[str, object]:
    stage = StageSpec(
        name=RECIPE, service_s=seconds_a_byte * PART_BYTES, sigma=0.2, setup_s=1.0, dispatch_s=0.01, item_bytes=500
    )
    spec = SimulationSpec(
        items=round(terabytes * 1e12 / PART_BYTES),
        stages=(stage,),
        nodes=(NodeSpec(count=machines, cpus=CORES, memory="256GB"),),
        faults=FaultSpec(lose_node_every_s=3600.0, node_back_s=300.0),
        source_bytes=round(PART_BYTES),
    )
    began = time.perf_counter()
    result = Simulation(spec).run()
    hours = result.makespan_s / 3600
    core_hours = hours * machines * CORES
    row: dict[str, object] = {
        "terabytes": terabytes,
        "machines": machines,
        "partitions": spec.items,
        "hours": round(hours, 2),
        "of_bound": round(result.of_bound, 3),
        "core_hours_a_terabyte": round(core_hours / terabytes, 2),
        "dollars": round(core_hours * DOLLARS, 2),
        "read_gbit_s_a_machine": round(terabytes * 8e3 / result.makespan_s / machines, 1),
        "simulated_in_s": round(time.perf_counter() - began, 1),
        "spec": dataclasses.asdict(stage),
    }
    print({name: value for name, value in row.items() if name != "spec"}, flush=True)
    return row


if __name__ == "__main__":
    main()
