"""`gristmill simulate`: how long a pipeline would take, in virtual time.

The pipeline is described by a YAML file of machines and stages, or by a finished run, with the speeds it measured.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import Debug
from gristmill.errors import ConfigError, NoInputError
from gristmill.metrics.amounts import duration

if TYPE_CHECKING:
    from gristmill.backends.simulated.result import SimulationResult
    from gristmill.runs.progress import MeasuredRun

MEASURED = "measured.json"


def simulate(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC|RUN_DIR", help="A YAML file with nodes, stages and items; or a finished run.")
    ],
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="For a run: other hardware. nodes, cpus, gpus, gpu_memory_gb, memory or items; a number, or 2x.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Run the scheduler on simulated machines and show how close to the best possible it comes."""
    path = Path(spec)
    if path.is_dir():
        _simulate_run(_find_measured(path), what_if or [], as_json=as_json)
    elif what_if:
        raise ConfigError(f"simulate: expected the directory of a run with --what-if; got {spec!r}")
    else:
        _simulate_file(path, as_json=as_json)


def _simulate_file(path: Path, *, as_json: bool) -> None:
    from gristmill.backends.simulated.simulation import Simulation
    from gristmill.backends.simulated.spec import SimulationSpec
    from gristmill.config.load_yaml import load_yaml, read_yaml_file

    if not path.is_file():
        raise NoInputError(f"simulate: expected a file or the directory of a run; got {str(path)!r}")
    result = Simulation(SimulationSpec.parse(load_yaml(read_yaml_file(path, who=str(path)), who=str(path)))).run()
    if as_json:
        answer(_document(result))
    else:
        typer.echo(_words(result))


def _find_measured(path: Path) -> "MeasuredRun":
    import msgspec

    from gristmill.runs.progress import MeasuredRun

    for file in (path / MEASURED, path / ".gristmill" / MEASURED):
        if file.is_file():
            try:
                return msgspec.json.decode(file.read_bytes(), type=MeasuredRun)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ConfigError(
                    f"simulate: expected {file} as this version of gristmill writes it; {error}"
                ) from None
    raise NoInputError(f"simulate: expected the directory of a finished run, with {MEASURED}; got {str(path)!r}")


def _simulate_run(run: "MeasuredRun", changes: list[str], *, as_json: bool) -> None:
    from gristmill.backends.simulated.simulation import Simulation
    from gristmill.backends.simulated.what_if import changed, spec_of

    spec = spec_of(run)
    after = changed(spec, changes)
    as_it_was = Simulation(spec).run()
    result = Simulation(after).run() if changes else as_it_was
    if as_json:
        measured = {"makespan_s": round(run.makespan_s, 3), "simulated_s": round(as_it_was.makespan_s, 3)}
        answer({**_document(result), "as_it_was": measured})
        return
    off = as_it_was.makespan_s / run.makespan_s - 1 if run.makespan_s else 0.0
    typer.echo(
        f"as it was: {duration(run.makespan_s)} measured, {duration(as_it_was.makespan_s)} simulated ({off:+.1%})"
    )
    if changes:
        typer.echo(f"with {', '.join(changes)}: {as_it_was.makespan_s / result.makespan_s:.2f} times as fast")
    typer.echo(_words(result))


def _document(result: "SimulationResult") -> dict[str, object]:
    return {
        "makespan_s": round(result.makespan_s, 3),
        "bound_s": round(result.bound_s, 3),
        "of_bound": round(result.of_bound, 4),
        "items_per_s": round(result.items_per_s, 4),
        "resource": result.resource,
        "shares": {name: round(share, 4) for name, share in result.shares.items()},
        "bottleneck": result.bottleneck,
        "utilisation": {name: round(share, 4) for name, share in result.utilisation.items()},
        "peak_workers": result.peak_workers,
        "workers_started": result.workers_started,
        "events": result.events,
    }


def _words(result: "SimulationResult") -> str:
    lines = [
        f"{result.items:,} items in {result.makespan_s:,.1f} s: {result.items_per_s:,.3f} a second",
        f"no schedule takes less than {result.bound_s:,.1f} s; this is {result.of_bound:.1%} of that",
        f"where the time of every {result.resource} went:",
    ]
    lines += [f"  {share:6.1%}  {name}" for name, share in result.shares.items()]
    lines.append("most workers of each stage at one time, and how busy they were:")
    lines += [
        f"  {count:6,}  {result.utilisation[name]:4.0%}  {name}{' (bottleneck)' * (name == result.bottleneck)}"
        for name, count in result.peak_workers.items()
    ]
    return "\n".join(lines)
