"""The history of a run as the page draws it: columns of at most so many points, whatever the run's length."""

from collections.abc import Iterable, Sequence

import msgspec

from gristmill.metrics.snapshot import RunSnapshot

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


def history_points(moments: Iterable[tuple[float, RunSnapshot]], most: int = MOST_POINTS) -> HistoryPoints:
    """Return the points of snapshots with their times, in order. A session that begins anew starts from zero."""
    times: list[float] = []
    snapshots: list[RunSnapshot] = []
    for at, snapshot in moments:
        if not times or at > times[-1]:
            times.append(at)
            snapshots.append(snapshot)
    bins = _bins(times, most)
    reads = _per_second(times, [float(s.read) for s in snapshots])
    written = _per_second(times, [float(s.written) for s in snapshots])
    groups = _groups(snapshots)
    kinds = sorted({kind for snapshot in snapshots for kind in snapshot.shares})
    return HistoryPoints(
        time=[times[last] for _, last in bins],
        read_per_s=_means(reads, bins),
        written_per_s=_means(written, bins),
        memory_bytes=_greatest([float(s.memory_bytes) for s in snapshots], bins),
        memory_limit=_greatest([float(s.memory_limit) for s in snapshots], bins),
        workers={name: _means([_workers(s, name) for s in snapshots], bins) for name in groups},
        shares={kind: _means([s.shares.get(kind, 0.0) for s in snapshots], bins) for kind in kinds},
    )


def _bins(times: Sequence[float], most: int) -> list[tuple[int, int]]:
    """First and last moment of each bin; bins are of equal time, and one without a moment is left out."""
    if len(times) <= most:
        return [(number, number) for number in range(len(times))]
    width = (times[-1] - times[0]) / most
    found: list[tuple[int, int]] = []
    number_before = -1
    for index, at in enumerate(times):
        number = min(most - 1, int((at - times[0]) / width))
        if number == number_before:
            found[-1] = found[-1][0], index
        else:
            found.append((index, index))
        number_before = number
    return found


def _per_second(times: Sequence[float], totals: Sequence[float]) -> list[float | None]:
    rates: list[float | None] = [None] * len(times)
    for index in range(1, len(times)):
        grown = totals[index] - totals[index - 1]
        rates[index] = max(0.0, grown) / (times[index] - times[index - 1])
    return rates


def _means(values: Sequence[float | None], bins: Sequence[tuple[int, int]]) -> list[float | None]:
    means: list[float | None] = []
    for first, last in bins:
        known = [value for value in values[first : last + 1] if value is not None]
        means.append(_rounded(sum(known) / len(known)) if known else None)
    return means


def _greatest(values: Sequence[float], bins: Sequence[tuple[int, int]]) -> list[float | None]:
    return [_rounded(max(values[first : last + 1])) for first, last in bins]


def _rounded(value: float) -> float:
    """To as many digits as a chart can show: numbers are a third as long in JSON."""
    return float(f"{value:.{DIGITS}g}")


def _groups(snapshots: Sequence[RunSnapshot]) -> list[str]:
    """The first stage of each group, in order, of all sessions."""
    names: dict[str, None] = {}
    for snapshot in (*snapshots[-1:], *snapshots[:1]):
        before = None
        for stage in snapshot.stages:
            if stage.group != before:
                names[stage.name] = None
            before = stage.group
    return list(names)


def _workers(snapshot: RunSnapshot, name: str) -> float:
    return next((float(stage.workers) for stage in snapshot.stages if stage.name == name), 0.0)
