"""The sections of a report that differ from run to run: where time went, and what was run on what."""

import json
from collections.abc import Iterator

from gristmill.dashboard.drawing import shares_bar
from gristmill.dashboard.markup import Child, Html, joined, table, tag, text
from gristmill.dashboard.report_documents import Section
from gristmill.dashboard.report_rules import name_of
from gristmill.dashboard.run_data import RunData
from gristmill.metrics.amounts import duration, share, size

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


def time_section(run: RunData) -> Section:
    """Where the time of the last session went, and what stages took in all sessions."""
    return "time", joined(_shares(run), _stages(run))


def _shares(run: RunData) -> Html:
    efficiency = run.time.efficiency
    if efficiency is None:
        return tag(
            "p", "How well the machine was used is not known: this executor does not say, or nothing was left to do."
        )
    parts = [(name, part, SHARES.get(name, (name, "rest"))[1]) for name, part in efficiency.shares.items()]
    rows: list[list[Child]] = [
        [SHARES.get(name, (name, ""))[0], f"{part:.1%}", duration(part * efficiency.makespan_s)]
        for name, part in efficiency.shares.items()
        if part
    ]
    said = (
        f"Every second of the scarcest resource ({efficiency.resource}) has its place. No schedule could have done "
        f"this in less than {duration(efficiency.bound_s)}; it took {duration(efficiency.makespan_s)}."
    )
    return joined(tag("p", said), shares_bar(parts), table(["share", "of the time", "seconds of each"], rows))


def _stages(run: RunData) -> Html:
    whole = sum(stage.process_s for stage in run.time.stages)
    rows: list[list[Child]] = [
        [
            name_of(stage.stage),
            f"{stage.process_s:,.1f}",
            share(stage.process_s, whole),
            f"{stage.documents_per_s:,.0f}",
        ]
        for stage in run.time.stages
    ]
    return joined(
        tag("h3", "Stages"), table(["stage", "seconds of workers", "of all", "documents a second and worker"], rows)
    )


def setting_section(run: RunData) -> Section:
    """Configuration, inputs and places."""
    setting = run.setting
    where = f" in {', '.join(setting.output_directories)}" if setting.output_directories else ""
    facts: list[list[Child]] = [
        ["pipeline", tag("bdi", text(setting.pipeline, 300))],
        ["fingerprint", tag("code", setting.fingerprint)],
        ["gristmill", setting.version],
        ["process", run.process],
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
