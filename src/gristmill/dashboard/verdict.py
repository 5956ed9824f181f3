"""`Verdict`: what a colleague would want to know of a run first, in sentences."""

import msgspec

from gristmill.dashboard.run_data import RunData, StageFlow
from gristmill.dashboard.run_rules import RuleData, SliceTable
from gristmill.metrics.amounts import duration, share, size
from gristmill.metrics.tally import shown

LOSSES_SAID = 3
NAMES_SAID = 6
ENOUGH = 30  # documents of a slice before its share is worth a word


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
    for found in run.documents.slices:
        said += _unlike_the_others(found)
    said += _idle_rules(run.documents.rules)
    return said


def _unlike_the_others(found: SliceTable) -> list[str]:
    """Values that lost over twice the average."""
    documents, lost = sum(value.documents for value in found.values), sum(value.lost for value in found.values)
    average = lost / documents if documents else 0.0
    said = []
    for value in found.values:
        if value.documents >= ENOUGH and value.lost / value.documents > 2 * average:
            name = "Documents without a value" if value.value is None else f"{value.value[:100]!r}"
            most = f", most of them by {value.losses[0].reason}" if value.losses else ""
            said.append(
                f"{name} in column {found.column} lost {share(value.lost, value.documents)} of its documents{most}; "
                f"the average is {share(lost, documents)}."
            )
    return said


def _idle_rules(rules: tuple[RuleData, ...]) -> list[str]:
    """Rules that dropped nothing, or everything, and bounds that no value has come near."""
    said = []
    deciding = [rule for rule in rules if rule.decides and rule.measured]
    idle = [rule for rule in deciding if not rule.refused]
    if idle:
        what = "One rule dropped nothing" if len(idle) == 1 else f"{len(idle)} rules dropped nothing"
        said.append(f"{what}: {_listed([_beside(rule) for rule in idle])}.")
    for rule in deciding:
        if not rule.kept:
            bound = f"; {outside}" if (outside := _outside(rule)) else ""
            said.append(f"{rule.name} dropped all {rule.measured:,} documents that reached it{bound}.")
    far = [(rule.name, outside) for rule in deciding if rule.kept and rule.refused and (outside := _outside(rule))]
    if far:
        said.append(f"No value comes near a threshold: {_listed([f'{name} ({words})' for name, words in far])}.")
    return said


def _beside(rule: RuleData) -> str:
    outside = _outside(rule)
    return f"{rule.name} ({outside})" if outside else rule.name


def _outside(rule: RuleData) -> str:
    """In which way a bound lies outside all values, if one does."""
    if rule.least is None or rule.greatest is None:
        return ""
    for bound in (bound for bound in (rule.low, rule.high) if bound is not None):
        if bound > rule.greatest:
            return f"the threshold is {shown(bound)}, no value exceeds {shown(rule.greatest)}"
        if bound < rule.least:
            return f"the threshold is {shown(bound)}, no value is below {shown(rule.least)}"
    return ""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SAID} more" if len(names) > NAMES_SAID else ""
    return f"{', '.join(names[:NAMES_SAID])}{more}"


def _of_time(run: RunData) -> list[str]:
    said = [_ending(run)]
    efficiency = run.time.efficiency
    if efficiency is not None:
        kind = {"cpu": "CPUs", "gpu": "GPUs"}.get(efficiency.resource, efficiency.resource)
        # The scheduler's time is that of the last segment; what comes before and after it is in the time of the run.
        least = f"the {kind} allow {duration(efficiency.bound_s)} in place of {duration(efficiency.makespan_s)}"
        said.append(f"The schedule was at {efficiency.of_bound:.0%} of the optimum: {least}.")
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
