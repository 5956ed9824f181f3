"""A stage that fails: what it raised, whose fault that is, and how it is put into words.

For a stage that lets nothing pass, these are its commonest errors with their counts, one traceback and one document:
enough to see the cause without opening a file.
"""

import traceback
from collections.abc import Iterable, Sequence

from gristmill.engine.faults import Fault, fault_of
from gristmill.engine.plan import AnyStage
from gristmill.metrics.snapshot import ErrorCount, ErrorCounts, ErrorExample, of_record
from gristmill.secrets import without_secrets
from gristmill.stages.context import Quarantined
from gristmill.storage.atomic_write import explain

MAX_ERROR_CHARS = 2_000  # of an error: some put the whole document into it
SEARCHED_CHARS = 100_000  # of an error, for secrets: many times what is kept of it

SHOWN = 3  # kinds of errors
SHOWN_CHARS = 300  # of a line
TRACE_LINES = 16


class StageRaised(Exception):  # carries a user's exception and which stage it was; never leaves a worker
    """A stage raised, or what it reported could not be written down."""

    def __init__(self, stage: AnyStage, error: Exception, fault: Fault | None = None) -> None:
        super().__init__(describe(error))
        self.stage = stage
        self.error = error
        self._fault = fault

    @property
    def fault(self) -> Fault:
        """Whose fault it is."""
        if self._fault is None:
            writes = self.stage.output_directory() is not None
            self._fault = fault_of(self.error, writes=writes, transient=self.stage.transient_errors)
        return self._fault

    def explained(self) -> str:
        """The error in words. For one of the machine's: the file, what is wrong with it, and how to go on."""
        error = self.error
        if self.fault in (Fault.MACHINE, Fault.MACHINE_FINAL) and isinstance(error, OSError):
            path = error.filename if isinstance(error.filename, str) else self.stage.output_directory()
            return cut_out_middle(explain(path or "a file this stage uses", error), MAX_ERROR_CHARS)
        if self.fault is Fault.BUG:
            return f"a bug in gristmill, not in the data: {describe(error)}"
        in_words = (Fault.INPUT, Fault.PROGRAM, Fault.LIMIT, Fault.SPENDING)
        return str(error) if self.fault in in_words else describe(error)


def describe(error: Exception) -> str:
    """An exception in words, even one that cannot say what it is."""
    said = "".join(traceback.format_exception_only(error)).strip()
    said += _hint(error, said)
    # Ten megabytes take 20 ms to search for secrets, for every document. What is at the seam is cut out below.
    ends = said if len(said) <= SEARCHED_CHARS else said[: SEARCHED_CHARS // 2] + said[-(SEARCHED_CHARS // 2) :]
    return cut_out_middle(without_secrets(ends.strip()), MAX_ERROR_CHARS, left_out=len(said) - len(ends))


def _hint(error: Exception, said: str) -> str:
    """What to do about a mistake made by everyone who comes from a tool whose batches are data frames."""
    if not isinstance(error, AttributeError | TypeError) or "'pyarrow.lib." not in said:
        return ""
    return " (task.data is an Arrow table here: take df = task.to_pandas(), and return task.with_data(df))"


def cut_out_middle(text: str, most: int, *, left_out: int = 0) -> str:
    """A text that may be long, without its middle: the beginning says what it is, the end of a traceback says where."""
    if len(text) <= most:
        return text
    left_out += len(text) - most
    return f"{text[: most // 2]} … [{left_out:,} characters left out] … {text[-(most // 2) :]}"


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
