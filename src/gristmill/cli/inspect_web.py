"""`gristmill inspect --web`: the dashboard's server with another site behind it."""

import contextlib
import os
import threading
from typing import TYPE_CHECKING

import typer

from gristmill.cli.dashboard import TOKEN_VARIABLE, address_of

if TYPE_CHECKING:
    from gristmill.inspection.dataset import Dataset


def serve(dataset: "Dataset", diff: str | None, id_field: str, host: str, port: int) -> None:
    """Print the address, with the token the page needs, and answer until Ctrl-C."""
    from gristmill.dashboard.guard import Guard, new_token
    from gristmill.dashboard.server import WebServer
    from gristmill.inspection.dataset import Dataset
    from gristmill.inspection.web.site import InspectSite

    token = os.environ.get(TOKEN_VARIABLE) or new_token()
    guard = Guard.for_address(host, token)
    with contextlib.ExitStack() as stack:
        there = None if diff is None else stack.enter_context(Dataset(diff))
        site = InspectSite(dataset, there=there, id_field=id_field)
        server = stack.enter_context(WebServer(site, guard, host, port))
        typer.echo(address_of(host, server.port, token))
        threading.Thread(target=dataset.count_rows, daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):  # the way to end it
            server.serve_forever(poll_interval=0.1)
