"""`gristmill status`: how a run is doing, from another shell or after its end. Reads the run directory only."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.options import Debug
from gristmill.errors import ConfigError

if TYPE_CHECKING:
    from gristmill.metrics.snapshot import RunSnapshot

ENDED = ("finished", "stopped", "failed")
SILENT_AFTER_S = 15.0  # a live run writes every second


def status(
    run_dir: Annotated[str, typer.Argument(metavar="RUN_DIR", help="The run directory, or the output directory.")],
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow until the run ends.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the state as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show how a run is doing."""
    directory = find_run_dir(run_dir)
    if as_json:
        typer.echo(json.dumps(read_documents(directory), ensure_ascii=False))
    elif watch:
        _watch(directory)
    else:
        _show(directory)


def find_run_dir(path: str) -> Path:
    """Return the run directory itself, also when the output directory around it was named."""
    for candidate in (Path(path), Path(path) / ".gristmill"):
        if (candidate / "status.json").is_file() or (candidate / "report.json").is_file():
            return candidate
    raise ConfigError(f"status: expected the directory of a run (with status.json in it); got {path!r}")


def read_documents(directory: Path) -> dict[str, object]:
    """Return the last snapshot, and the final report if there is one."""
    documents: dict[str, object] = {}
    for name in ("status", "report"):
        file = directory / f"{name}.json"
        if file.is_file():
            documents[name] = json.loads(file.read_bytes())
    return documents


def read_snapshot(directory: Path) -> "RunSnapshot":
    """Return the last snapshot the run has written."""
    import msgspec

    from gristmill.metrics.snapshot import RunSnapshot

    file = directory / "status.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=RunSnapshot)
    except FileNotFoundError:
        raise ConfigError(f"status: expected {file}; there is none") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"status: expected {file} to be written by this version of gristmill; {error}") from None


def _show(directory: Path) -> None:
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
    silence = _silence_s(directory)
    if snapshot.state not in ENDED and silence > SILENT_AFTER_S:
        console.print(
            f"No news for {silence:.0f} s: the run was probably killed. The same command continues it.", markup=False
        )


def _watch(directory: Path) -> None:
    from rich.console import Console

    from gristmill.metrics.progress import Progress
    from gristmill.metrics.screens import screen_on

    with Progress(screen=screen_on(Console(highlight=False), sys.stdout)) as progress:
        while True:
            snapshot = read_snapshot(directory)
            progress(snapshot)
            if snapshot.state in ENDED:
                return
            if _silence_s(directory) > SILENT_AFTER_S:
                raise ConfigError(
                    f"status: expected news from {directory} every second; got none for {SILENT_AFTER_S:.0f} s"
                )
            time.sleep(1.0)


def _silence_s(directory: Path) -> float:
    return time.time() - (directory / "status.json").stat().st_mtime
