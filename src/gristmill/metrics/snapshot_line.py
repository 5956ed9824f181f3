"""A `RunSnapshot` in one line, for a log file. Kept apart from the table, which needs rich."""

from gristmill.metrics.amounts import duration, share, size, time_left
from gristmill.metrics.snapshot import Rates, RunSnapshot


def one_line(snapshot: RunSnapshot, rates: Rates) -> str:
    """The state of a run for a log file."""
    parts = [
        f"[{duration(snapshot.elapsed_s)}] {snapshot.state}",
        f"{snapshot.partitions_done}/{snapshot.partitions_total} parts",
        f"read {snapshot.read:,}",
        f"kept {snapshot.written:,}",
        f"dropped {snapshot.dropped:,} ({share(snapshot.dropped, snapshot.read + snapshot.created)})",
    ]
    if snapshot.quarantined:
        parts.append(f"quarantined {snapshot.quarantined:,}")
    parts.append(f"{size(rates.bytes_per_s())}/s")
    if snapshot.eta_s is not None and snapshot.state == "running":
        parts.append(f"about {time_left(snapshot.eta_low_s, snapshot.eta_s, snapshot.eta_high_s)}")
    return ", ".join(parts)
