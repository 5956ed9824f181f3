"""The sections of a report that differ from run to run: where time went, and what was run on what."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from gristmill.dashboard.drawing import curve_chart, shares_bar
from gristmill.dashboard.markup import Child, Html, joined, table, tag, text
from gristmill.dashboard.report_documents import Section
from gristmill.dashboard.report_rules import NAME_CHARS, name_of
from gristmill.dashboard.run_data import RunData
from gristmill.dashboard.run_time import NodeTime, StageTime
from gristmill.metrics.amounts import duration, share, size
from gristmill.metrics.pace import BOUNDS

# What the shares of `engine/account.py` mean, and how each is drawn.
SHARES = {
    "useful": ("useful: workers at work", "kept"),
    "setup": ("setup: workers starting, models loading", "mark"),
    "starved": ("starved: nothing there to do", "rest"),
    "blocked": ("blocked: held back, the next stage was full", "aside"),
    "fragmented": ("fragmented: free, but too little for the worker that was wanted", "aside"),
    "wasted": ("wasted: done and lost, by failures and retries", "gone"),
    "scheduler": ("scheduler: deciding what to do next", "rest"),
}

MOMENTS_DRAWN = 3  # fewer are not a curve
CREWS_DRAWN = 6


def time_section(run: RunData) -> Section:
    """Where the time of the last session went, and what stages took in all sessions."""
    return "time", joined(_shares(run), _stages(run), *_curves(run))


def _shares(run: RunData) -> Html:
    efficiency = run.time.efficiency
    if efficiency is None:
        return tag(
            "p", "How well the machine was used is not known: this executor does not report it, or nothing was left."
        )
    parts = [(name, part, SHARES.get(name, (name, "rest"))[1]) for name, part in efficiency.shares.items()]
    rows: list[list[Child]] = [
        [_share_name(name), f"{part:.1%}", duration(part * efficiency.makespan_s)]
        for name, part in efficiency.shares.items()
        if part
    ]
    said = (
        f"Every second of the scarcest resource ({efficiency.resource}) has its place. No schedule could have done "
        f"this in less than {duration(efficiency.bound_s)}; it took {duration(efficiency.makespan_s)}."
    )
    return joined(tag("p", said), shares_bar(parts), table(["share", "of the time", "of each CPU or GPU"], rows))


def _curves(run: RunData) -> Iterator[Html]:
    """Speed, memory and workers over time, where there are enough moments to draw."""
    curves = run.time.curves
    if len(curves.seconds) < MOMENTS_DRAWN:
        return
    several = f", {run.time.sessions} sessions one after another" if run.time.sessions > 1 else ""
    yield tag("h3", f"Over time ({duration(curves.seconds[-1])}{several})")
    drawn = [("Documents read a second", curves.read_per_s), ("Memory", curves.memory_bytes)]
    drawn += [(f"Workers of {name[:NAME_CHARS]}", values) for name, values in _crews(run)]
    for title, values in drawn:
        most = max((value for value in values if value is not None), default=0.0)
        if most:
            label = f"{title}, at most {size(most) if title == 'Memory' else f'{most:,.0f}'}"
            yield joined(tag("h4", text(label, 300)), curve_chart(curves.seconds, values, label))


def _crews(run: RunData) -> list[tuple[str, tuple[float | None, ...]]]:
    """The largest crews."""
    found = run.time.curves.workers.items()
    return sorted(found, key=lambda item: -max((value or 0.0 for value in item[1]), default=0.0))[:CREWS_DRAWN]


def _share_name(name: str) -> Html:
    words, kind = SHARES.get(name, (name, "rest"))
    return joined(tag("span", class_=f"key {kind}"), words)


def _stages(run: RunData) -> Html:
    whole = sum(stage.process_s for stage in run.time.stages)
    rows: list[list[Child]] = [
        [
            name_of(stage.stage),
            f"{stage.process_s:,.1f}",
            share(stage.process_s, whole),
            f"{stage.documents_per_s:,.0f}",
            f"{stage.tasks:,}",
            _seconds(stage.p50_s),
            _seconds(stage.p95_s),
            _longest(stage),
        ]
        for stage in run.time.stages
    ]
    head: list[Child] = ["stage", "seconds of workers", "of all", "documents a second and worker", "tasks"]
    return joined(
        tag("h3", "Stages"),
        tag("div", table([*head, "half within", "95 % within", "all within"], rows), class_="wide"),
        _workers(run),
        _incidents(run),
    )


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f} s" if value >= 10 else f"{value:.2g} s"


def _longest(stage: StageTime) -> str:
    """The slot of the longest task has an upper end, or is the last one."""
    return (
        "–" if not stage.tasks else f"> {BOUNDS[-1]:,.0f} s" if stage.longest_s is None else _seconds(stage.longest_s)
    )


def _workers(run: RunData) -> Html | None:
    """What workers took at most. Stages that run fused in one worker have the same numbers, said once."""
    rows: list[list[Child]] = []
    before: tuple[int, int, int] | None = None
    for stage in run.time.stages:
        peaks = stage.peak_workers, stage.peak_memory_bytes, stage.peak_worker_bytes
        if any(peaks) and peaks != before:
            rows.append([name_of(stage.stage), f"{peaks[0]:,}", size(peaks[1]), size(peaks[2])])
        before = peaks
    limit = f" of the {size(run.time.memory_limit)} it may use" if run.time.memory_limit else ""
    said = f"At most the run held {size(run.time.peak_memory_bytes)}{limit}." if run.time.peak_memory_bytes else ""
    if not rows and not said:
        return None
    head: list[Child] = ["from stage", "most workers", "their memory", "largest worker"]
    return joined(tag("h3", "Workers"), tag("p", said) if said else None, table(head, rows) if rows else None)


def _incidents(run: RunData) -> Html:
    """Losses and retries, in words."""
    said = []
    for stage in run.time.stages:
        if stage.losses:
            causes = ", ".join(f"{number:,} by {cause}" for cause, number in sorted(stage.losses.items()))
            said.append(f"{stage.stage}: workers were lost, {causes}")
        if stage.retries:
            said.append(f"{stage.stage}: {stage.retries:,} task{'s were' if stage.retries > 1 else ' was'} tried again")
        if stage.recycles:
            said.append(
                f"{stage.stage}: {stage.recycles:,} worker{'s were' if stage.recycles > 1 else ' was'} replaced"
            )
    if not said:
        return tag("p", "No worker was lost, and no task was tried again.", class_="soft")
    return tag("ul", *(tag("li", text(line, 300)) for line in said))


def setting_section(run: RunData) -> Section:
    """Configuration, inputs and places."""
    setting = run.setting
    where = f" in {', '.join(setting.output_directories)}" if setting.output_directories else ""
    facts: list[list[Child]] = [
        ["pipeline", tag("bdi", text(setting.pipeline, 300))],
        ["fingerprint", tag("code", setting.fingerprint)],
        ["versions", _listed(setting.versions) or f"gristmill {setting.version}"],
        ["host", _listed(setting.host)],
        ["process", run.process],
        ["sessions", f"{run.time.sessions:,}" if run.time.sessions > 1 else ""],
        ["last session", _session(run)],
        ["machines", "; ".join(_machine(node) for node in run.time.nodes[:20])],
        ["inputs", f"{setting.num_inputs:,} ({size(setting.input_bytes)})"],
        ["output", f"{setting.output_files:,} files{where}"],
        ["rejects", setting.rejects_path or "not kept"],
    ]
    return "setting", joined(
        table(["", ""], [row for row in facts if row[1]], numbers=9),
        tag("details", tag("summary", "Configuration of the stages"), *_configurations(run)),
        _inputs(run),
        tag("h3", "Messages") if run.messages else None,
        *(tag("p", text(message, 500)) for message in run.messages),
    )


def _listed(words: dict[str, str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in words.items())


def _session(run: RunData) -> str:
    if not run.time.started_at:
        return ""
    start, end = (datetime.fromtimestamp(at, UTC) for at in (run.time.started_at, run.time.ended_at))
    return f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"


def _machine(node: NodeTime) -> str:
    gpus = f", {node.gpus} GPUs" if node.gpus else ""
    return f"{node.node}: {node.cpus} CPUs{gpus}, {size(node.memory_total_bytes)}"


def _configurations(run: RunData) -> Iterator[Html]:
    for stage in run.setting.stages:
        try:
            said = json.dumps(json.loads(stage.configuration), indent=1, ensure_ascii=False)
        except ValueError:  # cut
            said = stage.configuration
        yield joined(tag("h4", name_of(stage.stage)), tag("pre", text(said)))


def _inputs(run: RunData) -> Html | None:
    setting = run.setting
    if not setting.inputs:
        return None
    rows: list[list[Child]] = [
        [tag("span", text(file.path), class_="place"), size(file.num_bytes), tag("code", file.version)]
        for file in setting.inputs
    ]
    left = setting.num_inputs - len(rows)
    return tag(
        "details",
        tag("summary", "Inputs"),
        table(["file", "size", "version"], rows),
        tag("p", f"and {left:,} more") if left else None,
    )
