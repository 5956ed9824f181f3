"""`gristmill trace`: the schedule of a run as a file for a trace viewer. Reads the run directory; starts nothing."""

from pathlib import Path
from typing import Annotated

import typer

from gristmill.cli.options import Debug
from gristmill.errors import ConfigError
from gristmill.storage.file_system import disk_path


def trace(
    run_dir: Annotated[str, typer.Argument(metavar="RUN_DIR", help="The run directory, or the output directory.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to write.")] = "trace.json",
    start: Annotated[
        float, typer.Option("--from", metavar="S", min=0.0, help="Leave out what ended before this second.")
    ] = 0.0,
    end: Annotated[
        float | None, typer.Option("--to", metavar="S", min=0.0, help="And what began after this one.")
    ] = None,
    session: Annotated[
        int | None, typer.Option("--session", metavar="N", min=1, help="Of an earlier session: events.N.log.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write the schedule of a run as a Chrome trace, which https://ui.perfetto.dev opens in the browser.

    Workers are threads below their group of stages: set-up, tasks with their documents and how long they waited,
    stages inside them, retries, losses and commits; and as curves the tasks that wait and the workers' memory.
    """
    from gristmill.backends.chrome_trace import chrome_trace
    from gristmill.backends.schedules import RunSchedule
    from gristmill.storage.atomic_write import write_file

    place = disk_path(run_dir, who="trace")
    if end is not None and end < start:
        raise ConfigError(f"trace: expected --to to be after --from {start:g}; got {end:g}")
    try:
        schedule = RunSchedule(place, session=session)
    except ConfigError as error:
        raise ConfigError(f"trace: {error}") from None
    shown = schedule.within(start, float("inf") if end is None else end)
    path = disk_path(output, who="trace --output")
    written = write_file(str(path), chrome_trace(shown, schedule.groups, name=str(Path(place).name)), forced=False)
    if schedule.problem:
        typer.echo(f"gristmill: the trace ends early: {schedule.problem}", err=True)
    typer.echo(
        f"{path}: {schedule.num_events:,} events, {written.num_bytes:,} bytes. Open it at https://ui.perfetto.dev"
    )
