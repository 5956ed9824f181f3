"""A `RunSnapshot` as a table of at most 80 columns, or wider where names of stages are long and there is room."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from gristmill.metrics.amounts import count, duration, share, size, time_left
from gristmill.metrics.pace import slowest
from gristmill.metrics.snapshot import Rates, RunSnapshot, StageSnapshot
from gristmill.metrics.tally import metric_lines

BAR_WIDTH = 16
MOST_METRICS = 8  # lines below a table that is drawn again and again
NAME_WIDTH = 22  # what the eight numbers leave of 80 columns


def full_view(snapshot: RunSnapshot, rates: Rates) -> RenderableType:
    """The state of a run for a terminal: totals, then a row for each stage."""
    pace = [] if snapshot.state != "running" else _pace(snapshot)
    return Group(_headline(snapshot, rates), _totals(snapshot), *pace, _Stages(snapshot, rates))


def _pace(snapshot: RunSnapshot) -> list[Text]:
    """What the run waits for, and how sure the time left is."""
    words = [slowest(snapshot)]
    if snapshot.eta_s is not None:
        words.append(time_left(snapshot.eta_low_s, snapshot.eta_s, snapshot.eta_high_s))
    line = " · ".join(word for word in words if word)
    return [Text(line, no_wrap=True, overflow="ellipsis", style="bold")] if line else []


def live_view(snapshot: RunSnapshot, rates: Rates) -> RenderableType:
    """The same while it changes, with the first few of the other things stages count."""
    lines = own_metrics(snapshot)
    if left := len(lines) - MOST_METRICS:
        lines = lines if left < 0 else [*lines[:MOST_METRICS], f"and {left} more, which `gristmill status` shows"]
    texts = [Text(line, no_wrap=True, overflow="ellipsis", style="dim") for line in lines]
    return Group(full_view(snapshot, rates), *texts)


def own_metrics(snapshot: RunSnapshot) -> list[str]:
    """What stages count and observe besides documents, a line for each."""
    return [line for stage in snapshot.stages for line in metric_lines(stage.name, stage.metrics, stage.observed)]


def where_time_went(snapshot: RunSnapshot) -> str:
    """The shares of the scarcest resource, largest first, and how near the run is to the best possible; or nothing."""
    if not snapshot.shares:
        return ""
    parts = sorted(snapshot.shares.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} {part:.0%}" for name, part in parts if part >= 0.005)
    line = f"{snapshot.resource} time: {shown}"
    if snapshot.state == "finished":
        line += f"; at least {duration(snapshot.bound_s)} of work and set-up"
    return line


def _headline(snapshot: RunSnapshot, rates: Rates) -> Text:
    done, total = snapshot.input_bytes_done, snapshot.input_bytes_total
    if not total:
        done, total = snapshot.partitions_done, snapshot.partitions_total
    filled = round(BAR_WIDTH * done / total) if total else 0
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(snapshot.name, style="bold")
    line.append(f" {snapshot.state} {duration(snapshot.elapsed_s)} ")
    line.append("━" * filled, style="green").append("━" * (BAR_WIDTH - filled), style="dim")
    parts = f"{snapshot.partitions_done}/{snapshot.partitions_total} parts"
    line.append(f" {share(done, total)}, {parts}, {size(rates.bytes_per_s())}/s")
    return line


def _totals(snapshot: RunSnapshot) -> Text:
    memory = size(snapshot.memory_bytes)
    if snapshot.memory_limit:
        memory += f" of {size(snapshot.memory_limit)}"
    line = Text(no_wrap=True, overflow="ellipsis", style="dim")
    line.append(f"read {count(snapshot.read)}, kept {count(snapshot.written)}, dropped {count(snapshot.dropped)}")
    if snapshot.quarantined:
        line.append(f", quarantined {count(snapshot.quarantined)}", style="yellow not dim")
    return line.append(f" · mem {memory}")


class _Stages:
    """The table, made when it is known how wide it may be."""

    def __init__(self, snapshot: RunSnapshot, rates: Rates) -> None:
        self.snapshot, self.rates = snapshot, rates

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        yield _table(self.snapshot, self.rates, options.max_width - 80 + NAME_WIDTH)


def _table(snapshot: RunSnapshot, rates: Rates, name_width: int) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("stage", no_wrap=True, overflow="ellipsis", max_width=max(NAME_WIDTH, name_width))
    for heading in ("in", "out", "drop", "docs/s", "MB/s", "busy", "queue", "mem"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in _rows(snapshot, rates):
        table.add_row(*row)
    return table


def _rows(snapshot: RunSnapshot, rates: Rates) -> Iterator[tuple[str, ...]]:
    group: int | None = None
    for number, stage in enumerate(snapshot.stages):
        yield (
            stage.name,
            count(stage.documents_in),
            count(stage.documents_out),
            share(stage.dropped, stage.documents_in).replace(" ", ""),
            count(rates.documents_per_s(number)),
            f"{rates.bytes_per_s(number) / 1e6:.1f}",
            *_group_cells(stage, repeated=stage.group == group),
        )
        group = stage.group


def _group_cells(stage: StageSnapshot, *, repeated: bool) -> tuple[str, str, str]:
    # Fused stages share workers, queue and memory: said once, and a mark below it.
    if repeated:
        return "↑", "", ""
    queue = f"{stage.queue_s:.1f}s" if stage.queue_s < 100 else duration(stage.queue_s)
    return f"{stage.busy_workers}/{stage.workers}", queue, count(stage.memory_bytes) if stage.memory_bytes else "–"
