"""`gristmill status`: how a run is doing, from another shell or after its end. Reads the run directory only."""

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.options import Debug
from gristmill.cli.run_files import RunFiles, find_run
from gristmill.errors import ConfigError

if TYPE_CHECKING:
    from gristmill.metrics.snapshot import RunSnapshot

ENDED = ("finished", "stopped", "failed")


def status(
    run_dir: Annotated[str, typer.Argument(metavar="RUN_DIR", help="The run directory, or the output directory.")],
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow until the run ends.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the state as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show how a run is doing."""
    directory = find_run(run_dir, who="status")
    if as_json:
        typer.echo(json.dumps(read_documents(directory), ensure_ascii=False))
    elif watch:
        _watch(directory)
    else:
        _show(directory)


def read_documents(directory: RunFiles) -> dict[str, object]:
    """Return the last snapshot, and the final report if there is one."""
    documents: dict[str, object] = {}
    for name in ("status", "report"):
        content = directory.read(f"{name}.json")
        if content is not None:
            documents[name] = json.loads(content)
    return documents


def read_snapshot(directory: RunFiles) -> "RunSnapshot":
    """Return the last snapshot the run has written."""
    import msgspec

    from gristmill.metrics.snapshot import RunSnapshot

    file, content = f"{directory}/status.json", directory.read("status.json")
    if content is None:
        raise ConfigError(f"status: expected {file}; there is none")
    try:
        return msgspec.json.decode(content, type=RunSnapshot)
    except msgspec.DecodeError as error:
        raise ConfigError(f"status: expected {file} to be written by this version of gristmill; {error}") from None


def _show(directory: RunFiles) -> None:
    from rich.console import Console

    from gristmill.metrics.rates import Rates
    from gristmill.metrics.snapshot_view import full_view, where_time_went

    snapshot, rates = read_snapshot(directory), Rates()
    rates.add(snapshot)
    console = Console(highlight=False)
    console.print(full_view(snapshot, rates))
    if went := where_time_went(snapshot):
        console.print(went, markup=False)
    for message in snapshot.messages:
        console.print(message, markup=False)
    silence = directory.silence_s()
    if snapshot.state not in ENDED and silence > directory.silent_after_s:
        console.print(
            f"No news for {silence:.0f} s: the run was probably killed. The same command continues it.", markup=False
        )


def _watch(directory: RunFiles) -> None:
    from rich.console import Console

    from gristmill.metrics.progress import Progress
    from gristmill.metrics.screens import screen_on

    with Progress(screen=screen_on(Console(highlight=False), sys.stdout)) as progress:
        while True:
            snapshot = read_snapshot(directory)
            progress(snapshot)
            if snapshot.state in ENDED:
                return
            if (silence := directory.silence_s()) > directory.silent_after_s:
                raise ConfigError(
                    f"status: expected news from {directory} every few seconds; got none for {silence:.0f} s"
                )
            time.sleep(1.0)
