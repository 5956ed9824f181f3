"""The last words of a run, for someone who sees the tool for the first time."""

from typing import TYPE_CHECKING

from gristmill.cli.amounts import duration, share

if TYPE_CHECKING:
    from gristmill.backends.run_result import RunResult

NULL_TEXT = "null_text"  # what the filters of gristmill.stages.text call a document without text


def summarise(result: "RunResult", *, rejects: str | None = None) -> str:
    """Say what was read, kept, dropped and put aside, and where to look."""
    lines = [""]
    if result.already_finished:
        lines.append("--fresh starts it again. What it did:")
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
    if not result.balanced:
        lines.append("The books do not balance: some documents are unaccounted for. Please report this as a bug.")
    return "\n".join([*lines, *_hints(result, total), *_places(result, rejects)])


def _resumed(result: "RunResult") -> str:
    return ", counting what earlier attempts had done" if result.resumed else ""


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


def _hints(result: "RunResult", total: int) -> list[str]:
    without_text = sum(reasons.get(NULL_TEXT, 0) for reasons in result.dropped.values())
    if total and without_text == result.dropped_total == total - result.quarantined:
        return ["No document had any text: is text_field the right column?"]
    return []


def _places(result: "RunResult", rejects: str | None) -> list[str]:
    places = []
    if result.output_files:
        directory = result.output_files[0].rpartition("/")[0] or "."
        files = len(result.output_files)
        places.append(f"output       {directory} ({files} file{'s' * (files != 1)})")
    if rejects:
        places.append(f"rejects      {rejects} (each with stage, reason, value and threshold)")
    if result.quarantined and result.run_dir:
        places.append(f"quarantine   {result.run_dir}/quarantine (each with its source and error)")
    if result.run_dir:
        places.append(f"run          {result.run_dir} (gristmill status {result.run_dir})")
    return ["", *places] if places else []
