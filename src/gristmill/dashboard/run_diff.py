"""`RunDifference`: what differs between two runs, A and B: configuration, funnel, distributions, speed, documents."""

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from gristmill.dashboard.document_ids import IdDifference
from gristmill.dashboard.run_data import RunData
from gristmill.dashboard.run_rules import RuleData
from gristmill.metrics.tally import NOT_A_NUMBER

MOVED_FROM = 0.1  # the usual mark of the population stability index for "has moved"
GROUPS = 10  # of slots, with about as many documents each: single slots would measure chance


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A number of each run."""

    a: float
    b: float


class FunnelPair(msgspec.Struct, frozen=True, kw_only=True):
    """What left at a stage for a reason. A run that does not have the stage has None."""

    stage: str
    reason: str
    a: int | None
    b: int | None


class RulePair(msgspec.Struct, frozen=True, kw_only=True):
    """How the values of a measure are distributed in both runs."""

    stage: str
    rule: str
    index: float  # the population stability index; about 0 if nothing has moved
    moved: bool
    median_a: float | None
    median_b: float | None


class SpeedPair(msgspec.Struct, frozen=True, kw_only=True):
    """How fast the runs were."""

    wall_s: Pair
    documents_per_s: Pair
    process_s: Pair  # seconds of workers
    of_bound_a: float | None
    of_bound_b: float | None


class RunDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What `gristmill diff` says."""

    run_a: str
    run_b: str
    configuration: tuple[str, ...]  # A is "then", B is "now"
    books: dict[str, Pair]
    funnel: tuple[FunnelPair, ...]
    rules: tuple[RulePair, ...]
    speed: SpeedPair
    ids: IdDifference | None = None

    @property
    def moved(self) -> list[RulePair]:
        """Measures whose distribution has moved, the furthest first."""
        return sorted((pair for pair in self.rules if pair.moved), key=lambda pair: -pair.index)


def compare_runs(
    a: RunData, b: RunData, *, configuration: Sequence[str], ids: IdDifference | None = None
) -> RunDifference:
    """Compare two runs; `configuration` is what the layer that writes headers has to say about them."""
    names = ("read", "created", "written", "dropped", "quarantined")
    books = {name: Pair(a=getattr(a.documents.books, name), b=getattr(b.documents.books, name)) for name in names}
    return RunDifference(
        run_a=a.run_dir,
        run_b=b.run_dir,
        configuration=tuple(configuration),
        books=books,
        funnel=_funnel(a, b),
        rules=_rules(a, b),
        speed=SpeedPair(
            wall_s=Pair(a=a.time.wall_s, b=b.time.wall_s),
            documents_per_s=Pair(a=_speed(a), b=_speed(b)),
            process_s=Pair(a=_process_s(a), b=_process_s(b)),
            of_bound_a=a.time.efficiency.of_bound if a.time.efficiency else None,
            of_bound_b=b.time.efficiency.of_bound if b.time.efficiency else None,
        ),
        ids=ids,
    )


def _speed(run: RunData) -> float:
    return round(run.documents.books.read / run.time.wall_s, 1) if run.time.wall_s else 0.0


def _process_s(run: RunData) -> float:
    return round(sum(stage.process_s for stage in run.time.stages), 3)


def _funnel(a: RunData, b: RunData) -> tuple[FunnelPair, ...]:
    sides = [{stage.stage: _losses(stage.stage, run) for stage in run.documents.funnel} for run in (a, b)]
    stages = dict.fromkeys([*sides[0], *sides[1]])
    pairs = []
    for stage in stages:
        one, other = sides[0].get(stage), sides[1].get(stage)
        for reason in dict.fromkeys([*(one or {}), *(other or {})]):
            left = None if one is None else one.get(reason, 0)
            right = None if other is None else other.get(reason, 0)
            pairs.append(FunnelPair(stage=stage, reason=reason, a=left, b=right))
    return tuple(pairs)


def _losses(stage: str, run: RunData) -> dict[str, int]:
    [flow] = [flow for flow in run.documents.funnel if flow.stage == stage]
    losses = {reason.reason: reason.documents for reason in flow.reasons}
    return losses | ({"quarantined": flow.quarantined} if flow.quarantined else {})


def _rules(a: RunData, b: RunData) -> tuple[RulePair, ...]:
    """Rules that both have. A stage with one filter more has another name: then the name of the rule decides."""
    there = _numbered(b, _stage_and_name)
    by_name = _numbered(b, lambda rule: (rule.name,))
    names = _numbered(a, lambda rule: (rule.name,))
    alone = {id(rule): by_name.get(key) for key, rule in names.items()}
    found = ((rule, there.get(key) or alone[id(rule)]) for key, rule in _numbered(a, _stage_and_name).items())
    return tuple(_rule_pair(rule, other) for rule, other in found if other is not None)


def _stage_and_name(rule: RuleData) -> tuple[str, ...]:
    return rule.stage, rule.name


def _numbered(run: RunData, key: Callable[[RuleData], tuple[str, ...]]) -> dict[tuple[object, ...], RuleData]:
    """Rules by a key and which one of that key it is: a filter may be there several times with other parameters."""
    found: dict[tuple[object, ...], RuleData] = {}
    times: dict[tuple[str, ...], int] = {}
    for rule in run.documents.rules:
        times[key(rule)] = times.get(key(rule), 0) + 1
        found[*key(rule), times[key(rule)]] = rule
    return found


def _rule_pair(a: RuleData, b: RuleData) -> RulePair:
    one, other = (_labels(a, b), _labels(b, a)) if a.labels or b.labels else (_slots(a), _slots(b))
    index = stability_index(one, other)
    documents = sum(one.values()), sum(other.values())
    # Two samples of the same documents have an index of about this by chance.
    chance = (GROUPS - 1) * sum(1 / number for number in documents) if all(documents) else math.inf
    return RulePair(
        stage=a.stage,
        rule=a.name,
        index=round(index, 4),
        moved=index > MOVED_FROM + chance,
        median_a=a.quantiles.get("p50"),
        median_b=b.quantiles.get("p50"),
    )


def _slots(rule: RuleData) -> dict[int, int]:
    found = {int(slot): count for slot, count in rule.slots_kept.items()}
    for slot, count in rule.slots_refused.items():
        found[int(slot)] = found.get(int(slot), 0) + count
    return found


def _labels(rule: RuleData, other: RuleData) -> dict[int, int]:
    """Documents by label, each of those that two rules have being a slot."""
    all_labels = {found.label for both in (rule, other) for found in both.labels}
    numbers = {label: n for n, label in enumerate(sorted(all_labels, key=lambda label: (label is None, label or "")))}
    return {numbers[found.label]: found.kept + found.refused for found in rule.labels}


def stability_index(a: Mapping[int, int], b: Mapping[int, int]) -> float:
    """The population stability index of two tallies: the sum of (p - q) · ln(p / q) over groups of slots.

    Groups hold about a tenth of all documents each; values that are not numbers are a group of their own. Half a
    document is added to every group, because the logarithm of an empty one is not a number.
    """
    if not a or not b:
        return 0.0
    groups = _groups(a, b)
    sides = [[sum(side.get(slot, 0) for slot in group) + 0.5 for group in groups] for side in (a, b)]
    shares = [[count / sum(side) for count in side] for side in sides]
    return math.fsum((p - q) * math.log(p / q) for p, q in zip(*shares, strict=True))


def _groups(a: Mapping[int, int], b: Mapping[int, int]) -> list[list[int]]:
    sizes = sum(a.values()), sum(b.values())
    # Both runs weigh the same, however many documents each has.
    weights = {
        slot: a.get(slot, 0) / sizes[0] + b.get(slot, 0) / sizes[1] for slot in sorted({*a, *b} - {NOT_A_NUMBER})
    }
    groups: list[list[int]] = [[]]
    weight = 0.0
    for slot, own in weights.items():
        groups[-1].append(slot)
        weight += own
        if weight >= 2 * len(groups) / GROUPS and len(groups) < GROUPS:
            groups.append([])
    found = [group for group in groups if group]
    return [*found, [NOT_A_NUMBER]] if NOT_A_NUMBER in a or NOT_A_NUMBER in b else found
