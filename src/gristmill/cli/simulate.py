"""`gristmill simulate`: how long a pipeline would take on machines you describe, in virtual time."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.options import Debug
from gristmill.errors import NoInputError

if TYPE_CHECKING:
    from gristmill.backends.simulated.result import SimulationResult


def simulate(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A YAML file with nodes, stages and items.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Run the scheduler on pretended machines and show how close to the best possible it comes."""
    from gristmill.backends.simulated.simulation import Simulation
    from gristmill.backends.simulated.spec import SimulationSpec
    from gristmill.config.load_yaml import load_yaml

    path = Path(spec)
    if not path.is_file():
        raise NoInputError(f"simulate: expected a file; got {spec!r}")
    result = Simulation(SimulationSpec.parse(load_yaml(path.read_text(), who=spec))).run()
    typer.echo(json.dumps(_document(result)) if as_json else _words(result))


def _document(result: "SimulationResult") -> dict[str, object]:
    return {
        "makespan_s": round(result.makespan_s, 3),
        "bound_s": round(result.bound_s, 3),
        "of_bound": round(result.of_bound, 4),
        "items_per_s": round(result.items / result.makespan_s, 4),
        "resource": result.resource,
        "shares": {name: round(share, 4) for name, share in result.shares.items()},
        "peak_workers": result.peak_workers,
        "workers_started": result.workers_started,
        "events": result.events,
    }


def _words(result: "SimulationResult") -> str:
    lines = [
        f"{result.items:,} items in {result.makespan_s:,.1f} s: {result.items / result.makespan_s:,.3f} a second",
        f"no schedule takes less than {result.bound_s:,.1f} s; this is {result.of_bound:.1%} of that",
        f"where the time of every {result.resource} went:",
    ]
    lines += [f"  {share:6.1%}  {name}" for name, share in result.shares.items()]
    lines.append("workers of each stage, at most at a time:")
    lines += [f"  {count:6,}  {name}" for name, count in result.peak_workers.items()]
    return "\n".join(lines)
