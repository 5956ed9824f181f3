"""`answer`: the JSON a command was asked for, and nothing else on standard output.

A stage may print, and so may every library it uses, from Python or from C. Workers print to standard error anyway; with
`--json` this process does so too, by its descriptor, so that a script which reads the answer reads one line.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator

import typer

_kept: list[int] = []  # the real standard output, while the descriptor 1 is standard error


@contextlib.contextmanager
def alone_on_stdout() -> Iterator[None]:
    """From here on only `answer` reaches standard output."""
    try:
        real = os.dup(1)
    except OSError:  # it is closed: there is nothing to keep clean
        yield
        return
    sys.stdout.flush()
    os.dup2(2, 1)
    _kept.append(real)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(_kept.pop(), 1)
        os.close(real)


def answer(document: object) -> None:
    """Print one line of JSON to standard output."""
    line = json.dumps(document, ensure_ascii=False)
    if not _kept:
        typer.echo(line)
        return
    # Characters that cannot be encoded, as of a file name that is not UTF-8, become escapes that JSON knows.
    with os.fdopen(os.dup(_kept[-1]), "wb") as out:
        out.write(f"{line}\n".encode(sys.stdout.encoding or "utf-8", errors="backslashreplace"))
