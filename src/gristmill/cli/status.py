"""`gristmill status`: how a run is doing, from another shell or after its end. Reads the run directory only."""

import json
import socket
import sys
import time
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import Debug
from gristmill.cli.run_files import RunFiles, find_runs
from gristmill.errors import ConfigError

if TYPE_CHECKING:
    from gristmill.metrics.snapshot import RunSnapshot
    from gristmill.runs.sinks import Holder

ENDED = ("finished", "stopped", "failed")


def status(
    run_dir: Annotated[str, typer.Argument(metavar="RUN_DIR", help="The run directory, or the output directory.")],
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow until the run ends.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the state as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show how a run is doing."""
    runs = find_runs(run_dir, who="status")
    if as_json:
        answer(_as_json(runs))
    elif watch:
        _watch(next((run for run in runs if _lives(run)), runs[-1]))
    else:
        for run in runs:
            if len(runs) > 1:
                typer.echo(f"{run}:")
            _show(run)


def _as_json(runs: "list[RunFiles]") -> dict[str, object]:
    if len(runs) == 1:
        return read_documents(runs[0])
    return {"runs": [{"run_dir": str(run), **read_documents(run)} for run in runs]}


def read_documents(run: RunFiles) -> dict[str, object]:
    """Return the last snapshot, the final report if there is one, and whether the process that writes them lives."""
    documents: dict[str, object] = {}
    for name in ("status", "report"):
        content = run.read(f"{name}.json")
        if content is not None:
            try:
                documents[name] = json.loads(content)
            except (ValueError, RecursionError):
                raise ConfigError(
                    f"status: expected {run}/{name}.json to be JSON; it is damaged. "
                    "Running the same command again repairs it"
                ) from None
    if (found := run.holder()) is not None:
        documents["process"] = {"pid": found[0].pid, "host": found[0].host, "alive": found[1]}
    return documents


def _lives(run: RunFiles) -> bool:
    found = run.holder()
    return found is not None and found[1]


def read_snapshot(run: RunFiles) -> "RunSnapshot":
    """Return the last snapshot the run has written."""
    import msgspec

    from gristmill.metrics.snapshot import RunSnapshot

    file, content = f"{run}/status.json", run.read("status.json")
    if content is None:
        raise ConfigError(f"status: expected {file}; there is none")
    try:
        return msgspec.json.decode(content, type=RunSnapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"status: expected {file} to be written by this version of gristmill; {error}") from None


def _show(run: RunFiles) -> None:

    from rich.console import Console

    from gristmill.metrics.snapshot import Rates
    from gristmill.metrics.snapshot_view import full_view, own_metrics, where_time_went
    from gristmill.runs.books import read_errors
    from gristmill.runs.summary import error_lines

    console = Console(highlight=False)
    if run.read("status.json") is None:
        console.print("No state was written yet.", markup=False)
    else:
        snapshot, rates = read_snapshot(run), Rates()
        found = run.holder()
        if snapshot.state not in ENDED and found is not None and not found[1]:
            snapshot = msgspec.structs.replace(snapshot, state="killed", eta_s=None)
        rates.add(snapshot)
        console.print(full_view(snapshot, rates))
        errors = error_lines(read_errors(run.quarantine_files()))
        for line in (*own_metrics(snapshot), where_time_went(snapshot), *errors, *snapshot.messages):
            if line:
                console.print(line, markup=False)
        ended = snapshot.state in ENDED
        if line := _liveness(run, found, ended=ended):
            console.print(line, markup=False)


def _liveness(run: RunFiles, found: "tuple[Holder, bool] | None", *, ended: bool) -> str:
    """Return a remark about the process of a run, or nothing if it ended as it says."""
    silence = run.silence_s()
    if found is None:
        is_silent = not ended and silence > run.silent_after_s
        killed = f"No news for {silence:.0f} s: the run was probably killed. The same command continues it."
        return killed if is_silent else ""
    holder, lives = found
    if lives:
        late = f", without news for {silence:.0f} s" if silence > run.silent_after_s else ""
        return f"It is {'again ' if ended else ''}at work: {holder}{late}."
    if ended:
        return ""
    if holder.lives:
        left = f"{holder} is still alive but no longer holds it"  # a notebook whose run failed while the store was away
        return f"The run ended early: {left}. The same command continues it."
    is_here = holder.host in ("", socket.gethostname())  # when another machine was started is not known here
    restarted = " (the machine was restarted since)" if is_here and holder.is_of_another_start() else ""
    return f"The run was killed: {holder} is gone{restarted}. The same command continues it."


def _watch(run: RunFiles) -> None:
    from rich.console import Console

    from gristmill.metrics.progress import Progress
    from gristmill.metrics.screens import screen_on

    with Progress(screen=screen_on(Console(highlight=False), sys.stdout)) as progress:
        while True:
            snapshot = read_snapshot(run)
            progress(snapshot)
            if snapshot.state in ENDED:
                return
            found, silence = run.holder(), run.silence_s()
            if found is not None and not found[1]:
                raise ConfigError(f"status: {_liveness(run, found, ended=False)}")
            if found is None and silence > run.silent_after_s:
                raise ConfigError(f"status: expected news from {run} every few seconds; got none for {silence:.0f} s")
            time.sleep(1.0)
