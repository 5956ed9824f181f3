"""`gristmill dashboard`: show runs in a browser, live or after their end. Reads the run directories only."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.options import Debug
from gristmill.cli.run_files import RunFiles, find_runs
from gristmill.cli.run_readers import shown_run
from gristmill.errors import ConfigError
from gristmill.metrics.screens import say

if TYPE_CHECKING:
    from gristmill.dashboard.server import WebServer

TOKEN_VARIABLE = "GRISTMILL_TOKEN"  # the name of a variable, not a token  # noqa: S105
LAST_NEWS_S = 1.5  # for the end of a run to reach the pages that watch it


def dashboard(
    run_dirs: Annotated[
        list[str], typer.Argument(metavar="RUN_DIR...", help="Run directories, or output directories.")
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in this machine's browser.")] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name the page may be reached by, as a proxy's; may be repeated."),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let every user of this machine look; on a loopback address only.")
    ] = False,
    beside: Annotated[bool, typer.Option(hidden=True)] = False,
    debug: Debug = False,
) -> None:
    """Show runs in a browser."""
    from gristmill.dashboard.guard import Guard, new_token
    from gristmill.dashboard.runs_site import RunsSite
    from gristmill.dashboard.server import WebServer

    token = None if no_token else os.environ.get(TOKEN_VARIABLE) or new_token()
    guard = Guard.for_address(host, token, also=allow_host or ())
    # Beside a run that has just been started there is nothing to find yet.
    runs = [RunFiles(run_dirs[0])] if beside else [run for path in run_dirs for run in find_runs(path, who="dashboard")]
    site = RunsSite([shown_run(run) for run in runs])
    with WebServer(site, guard, host, port) as server:
        address = address_of(host, server.port, token)
        typer.echo(address)
        if open_page:
            import webbrowser

            webbrowser.open(address)
        if beside:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which then ends in good order
            threading.Thread(target=_end_with_the_run, args=(server,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):  # the way to end it
            server.serve_forever(poll_interval=0.1)
        site.end()


def address_of(host: str, port: int, token: str | None) -> str:
    """The address to open. What is behind # is not sent by browsers, so no log of a proxy has it."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # an address nobody can ask
    name = everywhere.get(host, host)
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"#token={token}" if token else "")


# Beside a run


@contextlib.contextmanager
def dashboard_beside(directory: str | None, port: int | None) -> Iterator[None]:
    """Start a dashboard for a run that is about to start, and say its address.

    It is a process of its own. It is tied to this one by its standard input: the end of that is the end of the
    run, however the run has ended.
    """
    if port is None:
        yield
        return
    if directory is None:
        raise ConfigError("--dashboard: expected --output or --run-dir, where the run is watched; got neither")
    command = [sys.executable, "-m", "gristmill.cli.main", "dashboard", directory, "--port", str(port), "--beside"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101  # asked for above
        address = process.stdout.readline().strip()
        if not address:  # it has said on standard error what was wrong
            raise ConfigError("--dashboard: expected it to start; it did not")
        say(f"dashboard    {address}")
        yield


def _end_with_the_run(server: "WebServer") -> None:
    while sys.stdin.buffer.read(4096):
        pass
    if server.num_streams:
        threading.Event().wait(LAST_NEWS_S)
    server.shutdown()
