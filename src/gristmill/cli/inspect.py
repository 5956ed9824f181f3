"""`gristmill inspect`: look at JSON lines and Parquet of any size."""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import Debug
from gristmill.errors import ConfigError

if TYPE_CHECKING:
    from gristmill.inspection.dataset import Dataset
    from gristmill.inspection.wanted import Wanted

HEAD = 10
_MALLOC_OPTIONS = ((-8, 1), (-3, 1 << 18), (-1, 1 << 18))  # one arena; larger blocks mapped, and returned at once
Where = Annotated[str, typer.Option(metavar="EXPR", help="Only rows for which this is true, such as 'score > 0.5'.")]
LabelsDir = Annotated[str | None, typer.Option(metavar="DIR", help="Keep labels here, as train-classifier takes them.")]
Port = Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="With --web: the port; 0 is a free one.")]


def inspect(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, directories or globs.")],
    head: Annotated[int | None, typer.Option(metavar="N", min=1, help="Print the first N rows.")] = None,
    sample: Annotated[int | None, typer.Option(metavar="N", min=1, help="Print N rows from all over the data.")] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print what the columns hold, with histograms.")] = False,
    row: Annotated[int | None, typer.Option(metavar="N", min=1, help="Print row N in full.")] = None,
    where: Where = "",
    search: Annotated[str, typer.Option(metavar="TEXT", help="Only rows that hold this text.")] = "",
    columns: Annotated[str, typer.Option(metavar="A,B,…", help="Only these columns.")] = "",
    diff: Annotated[str | None, typer.Option(metavar="PATH", help="Compare with this dataset, by id.")] = None,
    id_field: Annotated[str, typer.Option("--id-field", metavar="COLUMN", help="The column of ids.")] = "id",
    labels: LabelsDir = None,
    web: Annotated[bool, typer.Option("--web", help="Show it in a browser.")] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="With --web: the address to listen on.")] = "127.0.0.1",
    port: Port = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed is another sample.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Look at JSON lines (plain, .gz, .zst, .bz2) and Parquet of any size.

    In a terminal, with the extra `inspect`, it opens a view with pages, search and labels; elsewhere it prints.
    """
    chosen = [name for name, given in _modes(head, sample, row, stats=stats, diff=diff) if given]
    if len(chosen) > 1:
        raise ConfigError(
            f"inspect: expected one of --head, --sample, --row, --stats and --diff; got {' and '.join(chosen)}"
        )
    take_little_memory()
    from gristmill.inspection.dataset import Dataset

    with Dataset(paths) as dataset:
        names = [name.strip() for name in columns.split(",") if name.strip()]
        dataset.check_columns(names)
        wanted = dataset.wanted(where, search)
        if web:
            from gristmill.cli.inspect_web import serve

            serve(dataset, diff, id_field, host, port)
        elif stats:
            _print_statistics(dataset, names, wanted, seed, as_json=as_json)
        elif diff is not None:
            _print_difference(dataset, diff, id_field, names, as_json=as_json)
        elif not chosen and not as_json and _opens_here():
            _look(dataset, names, labels, id_field, where, search)
        else:
            _print_rows(dataset, names, wanted, (head, sample, row), seed, as_json=as_json)


def take_little_memory() -> None:
    """Let the allocators give memory back, before Arrow is loaded. A view of 10 GB then takes 133 to 141 MB.

    Arrow's own allocator keeps 50 MB more, the system's 20 to 40 unless told not to (docs/log/2026-11-17-inspect.md).
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if sys.platform == "linux":
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc; others do not keep so much
        if mallopt is not None:
            for option, value in _MALLOC_OPTIONS:
                mallopt(option, value)


def _modes(
    head: int | None, sample: int | None, row: int | None, *, stats: bool, diff: str | None
) -> Iterator[tuple[str, bool]]:
    yield from (("--head", head is not None), ("--sample", sample is not None), ("--row", row is not None))
    yield from (("--stats", stats), ("--diff", diff is not None))


def _opens_here() -> bool:
    """Whether there is a person with a terminal, and a library to draw on it."""
    import importlib.util

    from gristmill.metrics.screens import say

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    if importlib.util.find_spec("textual") is None:
        say("pages, search and labels in the terminal: pip install 'gristmill[inspect]'")
        return False
    return True


def _look(
    dataset: "Dataset", columns: Sequence[str], labels: str | None, id_field: str, where: str, search: str
) -> None:
    from gristmill.inspection.labels import Labels
    from gristmill.inspection.terminal.app import Opened, look

    look(Opened(dataset, columns, None if labels is None else Labels(labels), id_field, where, search))


def _print_rows(
    dataset: "Dataset",
    columns: Sequence[str],
    wanted: "Wanted",
    counts: tuple[int | None, int | None, int | None],
    seed: int,
    *,
    as_json: bool,
) -> None:
    from gristmill.cli import inspect_view
    from gristmill.inspection import selection

    head, sample, row = counts
    if row is not None:
        if not wanted.is_all:
            raise ConfigError("inspect: expected --row without --where and --search, because it counts all rows")
        dataset.count_rows()  # a row asked for by its number is that row, however long it takes
        found = selection.first(dataset, wanted, 1, dataset.at_row(row))
    elif sample is not None:
        found = selection.sampled(dataset, wanted, sample, seed=seed)
    else:
        found = selection.first(dataset, wanted, head or HEAD, dataset.start)
    if as_json:
        answer(inspect_view.rows_as_json(dataset, found, columns))
    elif row is not None:
        inspect_view.print_whole(dataset, found, columns)
    else:
        inspect_view.print_rows(dataset, found, columns, is_filtered=not wanted.is_all)


def _print_statistics(
    dataset: "Dataset", columns: Sequence[str], wanted: "Wanted", seed: int, *, as_json: bool
) -> None:
    from dataclasses import asdict

    from gristmill.cli import inspect_view
    from gristmill.inspection.statistics import measure

    found = measure(dataset, columns or dataset.columns(), seed=seed, wanted=wanted)
    if as_json:
        answer(asdict(found))
    else:
        inspect_view.print_statistics(found)


def _print_difference(dataset: "Dataset", other: str, id_field: str, columns: Sequence[str], *, as_json: bool) -> None:
    from dataclasses import asdict

    from gristmill.cli import inspect_view
    from gristmill.inspection.dataset import Dataset
    from gristmill.inspection.difference import compare

    with Dataset(other) as there:
        found = compare(dataset, there, id_field=id_field, columns=columns)
        if as_json:
            answer(asdict(found))
        else:
            inspect_view.print_difference(dataset, there, found, id_field)
