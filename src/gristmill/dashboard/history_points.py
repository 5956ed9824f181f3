"""The history of a run as the page draws it: columns of a limited number of points, whatever the run's length."""

import msgspec

from gristmill.metrics.history import History
from gristmill.metrics.history_writer import SHARES
from gristmill.metrics.snapshot import WORKER_STATES

MOST_POINTS = 600  # more than a chart has pixels for its lines
DIGITS = 4


class HistoryPoints(msgspec.Struct, frozen=True):
    """One value for each point of `time`; None where nothing is known. Of a bin of several moments it is the mean."""

    time: list[float]  # seconds since 1970
    read_per_s: list[float | None]
    written_per_s: list[float | None]
    memory_bytes: list[float | None]  # the greatest of its bin: a peak must not be smoothed away
    memory_limit: list[float | None]
    workers: dict[str, list[float | None]]  # by the first stage of each group
    shares: dict[str, list[float | None]]  # where the time went so far


def history_points(history: History, most: int = MOST_POINTS) -> HistoryPoints:
    """Return the points of a history, at most `most` of them."""

    def means(column: list[float | None]) -> list[float | None]:
        return _rounded(history.binned(column, most).mean)

    def greatest(name: str) -> list[float | None]:
        return _rounded(history.binned(history.column("run", "", name), most).greatest)

    def rate(name: str) -> list[float | None]:
        return means(history.per_second(history.column("run", "", name)))

    return HistoryPoints(
        time=history.bin_times(most),
        read_per_s=rate("read"),
        written_per_s=rate("written"),
        memory_bytes=greatest("memory_bytes"),
        memory_limit=greatest("memory_limit"),
        workers={name: means(_workers(history, name)) for name in history.groups},
        shares={name: means(column) for name, column in _shares(history).items()},
    )


def _workers(history: History, group: str) -> list[float | None]:
    states = [history.column("group", group, state) for state in WORKER_STATES]
    return [None if None in each else sum(filter(None, each)) for each in zip(*states, strict=True)]


def _shares(history: History) -> dict[str, list[float | None]]:
    """Shares of the resource that did the most useful work, up to each time."""
    found: dict[str, dict[str, list[float | None]]] = {
        resource: {share: history.column("run", "", f"{resource}_{share}_s") for share in SHARES}
        for resource in ("cpu", "gpu")
    }
    useful = {resource: (columns["useful"] or [0.0])[-1] or 0.0 for resource, columns in found.items()}
    columns = found["gpu" if useful["gpu"] > useful["cpu"] else "cpu"]
    totals = [sum(value or 0.0 for value in each) for each in zip(*columns.values(), strict=True)]
    return {
        share: [
            value / total if value is not None and total else None for value, total in zip(column, totals, strict=True)
        ]
        for share, column in columns.items()
        if any(column)
    }


def _rounded(values: list[float | None]) -> list[float | None]:
    """To as many digits as a chart can show: numbers are a third as long in JSON."""
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in values]
