"""`Verdict`: what a colleague would want to know of a run first, in sentences."""

import msgspec

from gristmill.dashboard.run_data import RunData, StageFlow
from gristmill.metrics.amounts import duration, share, size

LOSSES_SAID = 3


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Sentences about documents, about time, and warnings."""

    documents: tuple[str, ...]
    warnings: tuple[str, ...]
    time: tuple[str, ...]


def verdict_on(run: RunData) -> Verdict:
    """Say what became of the documents, what it took, and what to look at."""
    return Verdict(documents=tuple(_of_documents(run)), warnings=tuple(_warnings(run)), time=tuple(_of_time(run)))


def _of_documents(run: RunData) -> list[str]:
    books = run.documents.books
    total = books.read + books.created
    made = f", and {books.created:,} were made from them" if books.created else ""
    said = [f"{books.read:,} documents were read{made}; {books.written:,} were kept ({share(books.written, total)})."]
    gone = [f"{books.dropped:,} were dropped"] if books.dropped else []
    if books.quarantined:
        gone.append(f"{books.quarantined:,} could not be processed and {_are(books.quarantined)} in quarantine")
    if gone:
        said.append(f"{' and '.join(gone)}.")
    if largest := largest_losses(run)[:LOSSES_SAID]:
        words = "; ".join(f"{name} {number:,} ({share(number, total)})" for name, number in largest)
        said.append(f"{'The largest loss' if len(largest) == 1 else 'The largest losses'}: {words}.")
    said.append(
        "The books balance: every document is accounted for."
        if books.balanced
        else "The books do not balance: some documents are unaccounted for. Please report this as a bug."
    )
    return said


def largest_losses(run: RunData) -> list[tuple[str, int]]:
    """Why documents were dropped, the commonest reason first."""
    found = [
        (_label(stage, reason.reason), reason.documents) for stage in run.documents.funnel for reason in stage.reasons
    ]
    return sorted(found, key=lambda loss: (-loss[1], loss[0]))


def _label(stage: StageFlow, reason: str) -> str:
    """A stage with one reason is often named like it."""
    return reason if len(stage.reasons) > 1 or reason == stage.stage else f"{stage.stage} ({reason})"


def _warnings(run: RunData) -> list[str]:
    books = run.documents.books
    said = []
    if books.lost_parts:
        parts = "1 part of a file" if books.lost_parts == 1 else f"{books.lost_parts:,} parts of files"
        said.append(f"{parts} ({size(books.lost_bytes)}) could not be read: nobody knows how many documents they held.")
    if books.read and not books.written:
        said.append("Nothing was kept.")
    return said


def _of_time(run: RunData) -> list[str]:
    said = [_ending(run)]
    efficiency = run.time.efficiency
    if efficiency is not None:
        kind = {"cpu": "CPUs", "gpu": "GPUs"}.get(efficiency.resource, efficiency.resource)
        said.append(
            f"That is {efficiency.of_bound:.0%} of the optimum: the {kind} allow {duration(efficiency.bound_s)}."
        )
    return said


def _ending(run: RunData) -> str:
    books, took = run.documents.books, duration(run.time.wall_s)
    if run.state == "finished":
        whole = "The last session took" if run.time.resumed else "It took"
        return f"{whole} {took}."
    done = f"{books.partitions:,} of {books.partitions_total:,} source partitions are committed"
    if run.state == "killed":
        return f"The run was killed, at the latest after {took}: {done}. The same command continues it."
    if run.state in ("stopped", "failed"):
        how = "was stopped" if run.state == "stopped" else "failed"
        return f"The run {how} after {took}: {done}. The same command continues it."
    return f"The run has been at work for {took}: {done} so far."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
