"""The last words of a run, for someone new to the tool: what became of the documents, and why.

`print(result)`, the end of `Pipeline.run` and the command line say the same; they differ in how an option is written.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gristmill.metrics.amounts import duration, share, size
from gristmill.metrics.snapshot import ErrorCount
from gristmill.metrics.tally import metric_lines

if TYPE_CHECKING:
    from gristmill.engine.breaker import QuarantineLimit
    from gristmill.runs.books import RunResult

NULL_TEXT = "null_text"  # what the filters of gristmill.stages.text call a document without text
MOST_ERRORS = 5  # lines about errors; the report has all of them
MOST_CHARS = 200
MOST_METRICS = 20  # lines about what stages count


def summarise(result: "RunResult", *, command_line: bool = False) -> str:
    """Say what was read, kept, dropped and put aside, why, and where to look."""
    lines = []
    if result.already_finished:
        lines.append(f"{'--fresh' if command_line else 'fresh=True'} starts it again. What it did:")
    total = result.read + result.created
    width = max(9, len(f"{total:,}"))
    lines.append(f"{result.read:>{width},}  documents read in {duration(result.wall_s)}{_resumed(result)}")
    if result.created:
        lines.append(f"{result.created:>{width},}  made from them")
    lines.append(f"{result.written:>{width},}  kept ({share(result.written, total)})")
    lines += _dropped_lines(result, total, width)
    if result.quarantined:
        part = share(result.quarantined, total)
        lines.append(f"{result.quarantined:>{width},}  quarantined: they could not be processed ({part})")
    if result.lost_parts:
        lines.append(f"{result.lost_parts:>{width},}  {_lost(result)}")
    lines += error_lines(result.errors, indent=width + 2)
    lines += _metric_lines(result, indent=width + 2)
    if not result.balanced:
        lines.append("The books do not balance: some documents are unaccounted for. Please report this as a bug.")
    return "\n".join([*lines, *_hints(result, total, command_line=command_line), *_places(result)])


def error_lines(errors: Sequence[ErrorCount], *, indent: int = 0) -> list[str]:
    """Say which errors there were, how often and where, the commonest of each stage first."""
    shown = errors if len(errors) <= MOST_ERRORS else sorted(errors, key=lambda e: -e.count)[:MOST_ERRORS]
    width = max((len(f"{_weight(error):,}") for error in shown), default=0)
    lines = []
    for error in shown:
        lines.append(f"{'':{indent}}{_weight(error):>{width},} in {error.stage}: {_cut(error.error)}")
        if place := error.example.place:
            lines.append(f"{'':{indent}}{'':{width}} for example {_cut(place)}")
    if left := len(errors) - len(shown):
        lines.append(f"{'':{indent}}and {left} other kind{'s' * (left != 1)} of error")
    return lines


def commonest(errors: Sequence[ErrorCount]) -> str:
    """The commonest error in one clause, or nothing: "most often in stage parse: ValueError: … (document 7 in x)"."""
    if not errors:
        return ""
    most = max(errors, key=lambda error: (error.count, error.lost_parts))
    place = f" (for example {_cut(most.example.place)})" if most.example.place else ""
    return f"most often in stage {most.stage}: {_cut(most.error)}{place}"


def too_many_quarantined(result: "RunResult", limit: "QuarantineLimit") -> str:
    """Why a run stopped at its limit, in the units the limit was given in."""
    got = f"{result.quarantined:,} of {result.read:,} read"
    expected = f"at most {limit}"
    if isinstance(limit.most, float):
        expected += " of the documents read"
        got += f" ({share(result.quarantined, result.read)})"
    if result.lost_parts:
        parts = f"{result.lost_parts:,} part{'s' * (result.lost_parts != 1)} of files"
        got += f" and {parts} ({size(result.lost_bytes)}) that could not be read"
    cause = commonest(result.errors)
    reason = f", {cause}" if cause else ""
    where = f"; see {_directories(result.quarantine_files)}" if result.quarantine_files else ""
    return f"expected {expected} in quarantine; got {got}{reason}. What is good is committed{where}"


def _weight(error: ErrorCount) -> int:
    return error.count or error.lost_parts


def _cut(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= MOST_CHARS else f"{line[:MOST_CHARS]}…"


def _lost(result: "RunResult") -> str:
    one = result.lost_parts == 1
    parts = "part of a file" if one else "parts of files"
    held = "it" if one else "they"
    return f"{parts} ({size(result.lost_bytes)}) could not be read: how many documents {held} held is unknown"


def _resumed(result: "RunResult") -> str:
    return ", counting what earlier attempts had done" if result.resumed else ""


def _metric_lines(result: "RunResult", indent: int) -> list[str]:
    """What the authors of stages count and observe."""
    observed = {stage: {name: each.to_json() for name, each in own.items()} for stage, own in result.observed.items()}
    lines = [
        line
        for stage, counts in result.counts.items()
        for line in metric_lines(stage, counts.counted, observed.get(stage, {}), indent=" " * indent)
    ]
    left = len(lines) - MOST_METRICS
    return lines if left <= 0 else [*lines[:MOST_METRICS], f"{'':{indent}}and {left} more in the report"]


def _dropped_lines(result: "RunResult", total: int, width: int) -> list[str]:
    if not result.dropped_total:
        return []
    lines = [f"{result.dropped_total:>{width},}  dropped ({share(result.dropped_total, total)})"]
    for stage, reasons in result.dropped.items():
        for reason, number in sorted(reasons.items(), key=lambda item: -item[1]):
            label = stage if reason == stage else f"{stage}: {reason}"
            lines.append(
                f"{'':{width}}  {number:>{len(f'{result.dropped_total:,}')},} by {label} ({share(number, total)})"
            )
    return lines


def _hints(result: "RunResult", total: int, *, command_line: bool) -> list[str]:
    hints = []
    if total and not result.written:
        hints.append(_why_nothing(result, total))
    # A line that is not JSON will not change; a stage that raised may be fixed.
    if result.run_dir and any(error.example.traceback or error.kind == "WorkerLost" for error in result.errors):
        option = "--retry-quarantined" if command_line else "retry_quarantined=True"
        hints.append(f"Once the cause is fixed, {option} tries quarantined documents again.")
    return hints


def _why_nothing(result: "RunResult", total: int) -> str:
    """Why nothing was kept: the stage and the reason that took the most."""
    if sum(reasons.get(NULL_TEXT, 0) for reasons in result.dropped.values()) == total:
        return "No document had any text: is text_field the right column?"
    if result.quarantined >= result.dropped_total:
        cause = commonest(result.errors)
        return f"Nothing was kept: {result.quarantined:,} of {total:,} failed{f', {cause}' if cause else ''}"
    dropped = [(number, stage, reason) for stage, own in result.dropped.items() for reason, number in own.items()]
    number, stage, reason = max(dropped)
    label = stage if reason == stage else f"{stage} ({reason})"
    return f"Nothing was kept: {number:,} of {total:,} were dropped by {label}"


def _places(result: "RunResult") -> list[str]:
    places = output_line(result)
    for found in result.found.values():
        if path := found.get("duplicates_path"):
            places.append(f"duplicates   {path} (each with the document it lost to; report.json beside it)")
    if files := result.rejects_files:
        places.append(f"rejects      {_directories(files)} (each with stage, reason, value and threshold)")
    if result.quarantine_files:
        places.append(f"quarantine   {_directories(result.quarantine_files)} (each with its source and error)")
    if result.run_dir:
        places += [f"run          {result.run_dir}", f"next         gristmill report {result.run_dir}"]
    return ["", *places] if places else []


def output_line(result: "RunResult") -> list[str]:
    """Where the files are that a run has written; nothing if there are none."""
    if not result.output_files:
        return []
    files = len(result.output_files)
    return [f"output       {_directories(result.output_files)} ({files} file{'s' * (files != 1)})"]


def _directories(files: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(file.rpartition("/")[0] or "." for file in files))
