"""Words about a stage that lets nothing pass: its commonest errors with their numbers, one traceback, one document.

Whoever reads them sees the cause without opening a file.
"""

from collections.abc import Iterable, Sequence

from gristmill.metrics.snapshot import ErrorCount, ErrorCounts, ErrorExample, of_record
from gristmill.stages.context import Quarantined

SHOWN = 3  # kinds of errors
SHOWN_CHARS = 300  # of a line
TRACE_LINES = 16


def count_errors(stage: str, records: Iterable[Quarantined]) -> list[ErrorCount]:
    """Count what a stage has quarantined, the commonest error first."""
    counts = ErrorCounts()
    for record in records:
        example = ErrorExample(
            record.document_id, record.source, record.line, record.row, "", record.traceback, record.document
        )
        counts.add(
            of_record(
                stage,
                record.kind,
                record.error,
                example,
                num_documents=record.num_documents,
                lost_bytes=record.lost_bytes,
            )
        )
    return counts.all()


def account_of(errors: Sequence[ErrorCount]) -> str:
    """Say what went wrong, in several lines; nothing if nothing is known."""
    if not errors:
        return ""
    lines = [f"  {max(error.count, error.lost_parts):,} × {_shortened(error.error)}" for error in errors[:SHOWN]]
    if len(errors) > SHOWN:
        lines.append(f"  and {len(errors) - SHOWN} other kinds of errors")
    example = errors[0].example
    if example.place or example.document:
        lines.append(f"For example {example.place or 'this one'}: {_shortened(example.document) or '(not shown)'}")
    trace = example.traceback.rstrip().splitlines()
    if len(trace) > TRACE_LINES:
        trace = ["...", *trace[-TRACE_LINES:]]
    return "\n".join([*lines, *(f"  {_shortened(line)}" for line in trace)])


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
