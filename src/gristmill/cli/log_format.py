"""`--log-format`: whether what a run says is text, or one JSON object per line."""

import contextlib
import os
from collections.abc import Iterator
from typing import Annotated

import typer

from gristmill.errors import ConfigError, nearest
from gristmill.metrics.log_lines import FORMATS, VARIABLE

LogFormat = Annotated[
    str | None,
    typer.Option("--log-format", metavar="text|json", help="How messages, progress and workers' logs are written."),
]


@contextlib.contextmanager
def log_format(wanted: str | None) -> Iterator[None]:
    """Write lines in this form, here and in processes started from here, until the end."""
    if wanted is None:
        yield
        return
    if wanted not in FORMATS:
        raise ConfigError(f"--log-format: expected text or json; got {wanted!r}{nearest(wanted, FORMATS)}")
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = wanted
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
