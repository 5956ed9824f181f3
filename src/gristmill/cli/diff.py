"""`gristmill diff`: what differs between two runs. Reads the run directories, and with --ids the documents."""

from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import Debug
from gristmill.cli.run_files import RunFiles, find_runs
from gristmill.errors import ConfigError
from gristmill.metrics.amounts import duration, share
from gristmill.metrics.tally import shown

if TYPE_CHECKING:
    from gristmill.dashboard.document_ids import IdDifference
    from gristmill.dashboard.run_diff import RunDifference

NAMED_IN_TERMINAL = 10
CHANGES_IN_TERMINAL = 30


def diff(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="A run directory, or an output directory.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="The run to compare it with.")],
    ids: Annotated[bool, typer.Option("--ids", help="Say which documents differ, and by which rule.")] = False,
    id_field: Annotated[str, typer.Option(metavar="NAME", help="The column that names a document.")] = "id",
    most_named: Annotated[int, typer.Option(metavar="N", min=0, help="Name at most this many documents.")] = 1_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the difference as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Say what differs between two runs: configuration, funnel, distributions, speed, and documents.

    The rule that dropped a document is known where the run kept its rejects.
    """
    import msgspec

    from gristmill.dashboard.document_ids import compare_ids
    from gristmill.dashboard.run_data import read_run
    from gristmill.dashboard.run_diff import compare_runs

    a, b = _only_run(run_a), _only_run(run_b)
    found = compare_runs(
        read_run(a, examples=False),
        read_run(b, examples=False),
        configuration=_configuration(a, b),
        ids=compare_ids(a.document_files(), b.document_files(), id_field=id_field, most_named=most_named)
        if ids
        else None,
    )
    if as_json:
        answer(msgspec.to_builtins(found))
    else:
        typer.echo("\n".join(_words(found)))


def _only_run(path: str) -> RunFiles:
    runs = find_runs(path, who="diff")
    if len(runs) > 1:
        names = ", ".join(str(run) for run in runs[:5])
        raise ConfigError(f"diff: expected the directory of one run; {path!r} has {len(runs)}: {names}")
    return runs[0]


def _configuration(a: RunFiles, b: RunFiles) -> list[str]:
    from gristmill.runs.ledger import differences

    sides = [run.headers() for run in (a, b)]
    if len(sides[0]) != len(sides[1]):
        return [f"exchanges: {len(sides[0]) - 1} then, {len(sides[1]) - 1} now"]
    said = [line for before, now in zip(*sides, strict=True) for line in differences(before, now)]
    is_same = [header.get("fingerprint") for header in sides[0]] == [header.get("fingerprint") for header in sides[1]]
    return said if said or is_same else ["the code of a stage has changed"]


def _words(found: "RunDifference") -> list[str]:
    lines = [f"A  {found.run_a}", f"B  {found.run_b}", "", *_configuration_words(found), ""]
    lines += [f"{'':44} {'A':>14} {'B':>14} {'B - A':>14}"]
    for name, pair in found.books.items():
        lines.append(_numbers(name, pair.a, pair.b))
    for stage in dict.fromkeys(row.stage for row in found.funnel):
        lines.append(f"  {stage}")
        lines += [_numbers(f"    {row.reason}", row.a, row.b) for row in found.funnel if row.stage == stage]
    return [*lines, "", *_moved_words(found), *_speed_words(found), *(_id_words(found.ids) if found.ids else [])]


def _configuration_words(found: "RunDifference") -> list[str]:
    if not found.configuration:
        return ["Both ran the same pipeline on the same input."]
    few, left = found.configuration[:CHANGES_IN_TERMINAL], len(found.configuration) - CHANGES_IN_TERMINAL
    return [
        "What differs (A then, B now):",
        *(f"  {line}" for line in few),
        *([f"  and {left} more"] if left > 0 else []),
    ]


def _numbers(label: str, a: float | None, b: float | None) -> str:
    name = label if len(label) <= 44 else f"{label[:43]}…"
    one, other = ("-" if number is None else f"{number:,.0f}" for number in (a, b))
    change = f"{b - a:+,.0f}" if a is not None and b is not None and a != b else ""
    return f"{name:44} {one:>14} {other:>14} {change:>14}".rstrip()


def _moved_words(found: "RunDifference") -> list[str]:
    if not found.rules:
        return ["Distributions: at least one of the runs has recorded none."]
    if not found.moved:
        return [f"Distributions: none of {len(found.rules)} has moved."]
    lines = [f"Distributions: {len(found.moved)} of {len(found.rules)} have moved (stability index over 0.1):"]
    for pair in found.moved:
        medians = [pair.median_a, pair.median_b]
        middle = " → ".join("-" if value is None else shown(value) for value in medians)
        lines.append(f"  {pair.rule}: {pair.index:.2f}, median {middle}")
    return lines


def _speed_words(found: "RunDifference") -> list[str]:
    speed = found.speed
    bounds = ["-" if share is None else f"{share:.0%}" for share in (speed.of_bound_a, speed.of_bound_b)]
    said = (
        f"Time: {duration(speed.wall_s.a)} and {duration(speed.wall_s.b)}; "
        f"{speed.documents_per_s.a:,.0f} and {speed.documents_per_s.b:,.0f} documents a second; "
        f"{speed.process_s.a:,.1f} and {speed.process_s.b:,.1f} s of workers; "
        f"{bounds[0]} and {bounds[1]} of the optimum."
    )
    return [said]


def _id_words(ids: "IdDifference") -> list[str]:
    lines = ["", f"{ids.kept_by_a_only:,} documents kept by A only, {ids.kept_by_b_only:,} by B only."]
    lines += [f"  {one.documents:,}  {one.a} in A, {one.b} in B" for one in ids.disagreements]
    lines += [f"    {one.id}  {one.a} in A, {one.b} in B" for one in ids.named[:NAMED_IN_TERMINAL]]
    left = sum(one.documents for one in ids.disagreements) - len(ids.named[:NAMED_IN_TERMINAL])
    if left > 0:
        lines.append(f"    and {left:,} more; --json names up to --most-named of them")
    if ids.without_id:
        all_documents = ids.documents_a + ids.documents_b
        lines.append(f"{ids.without_id:,} documents ({share(ids.without_id, all_documents)}) have no id: not compared.")
    return lines
