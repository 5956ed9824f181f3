"""The verdict names what is worth a look, and nothing else."""

import pytest

from gristmill.dashboard.report import Report
from gristmill.dashboard.run_data import Books, Documents, Reason, RunData, Setting, StageFlow
from gristmill.dashboard.run_diff import compare_runs
from gristmill.dashboard.run_rules import rules_of, samples_of, slices_of
from gristmill.dashboard.run_time import Efficiency, RunTime
from gristmill.dashboard.verdict import verdict_on
from gristmill.metrics.observations import Amount, Example, MeasureTally, Nearest, Observations, Sample, Side, Slices
from gristmill.metrics.tally import tallied

HOSTILE = "</style><script>alert(1)</script>\u202e\x1b"


def side(values):
    return Side(tallied(values), 0, min(values, default=None), max(values, default=None))


def tally(name, kept, refused, low=None, high=None):
    return MeasureTally(
        "filters", 1, 0, name, "words", low, high, f"{name} in bounds", True, None, side(kept), side(refused)
    )


def slices(**values):
    found = Slices()
    for value, (written, dropped) in values.items():
        found.of(value).written.add(Amount(written, written * 10))
        found.of(value).drop("filters", "words", Amount(dropped, dropped * 10))
    return found


def run_of(seen, state="finished", **books):
    flow = dict.fromkeys(StageFlow.__struct_fields__, 0)
    flow |= {"stage": "filters", "kind": "ScoreFilter", "counted": {}, "observed": {}, "read": 100, "dropped": 40}
    reasons = (Reason(reason="words", documents=30), Reason(reason="letters", documents=10))
    documents = Documents(
        books=Books(read=100, written=60, dropped=40, partitions=2, partitions_total=3, **books),
        funnel=(StageFlow(**flow | {"reasons": reasons}),),
        rules=rules_of(seen, {("filters", "words"): 30}, examples=True),
        samples=samples_of(seen, examples=True),
        slices=slices_of(seen),
    )
    efficiency = Efficiency(makespan_s=10.0, bound_s=8.0, of_bound=0.8, resource="cpu", shares={"useful": 0.8})
    time = RunTime(wall_s=10.0, efficiency=efficiency)
    return RunData(
        run_dir="run",
        name="n",
        state=state,
        is_live=False,
        process="",
        documents=documents,
        time=time,
        setting=Setting(),
    )


def test_it_says_what_was_kept_the_largest_losses_and_how_close_to_the_optimum():
    verdict = verdict_on(run_of(Observations()))

    assert verdict.documents[0] == "100 documents were read; 60 were kept (60 %)."
    assert verdict.documents[2] == "The largest losses: words 30 (30 %); letters 10 (10 %)."
    assert verdict.time == (
        "It took 0:10.",
        "The schedule was at 80% of the optimum: the CPUs allow 0:08 in place of 0:10.",
    )
    assert verdict.warnings == ()


@pytest.mark.parametrize(
    ("tallies", "said"),
    [
        ([tally("a", [1, 2], [], high=9)], "One rule dropped nothing: a (the threshold is 9, no value exceeds 2)."),
        ([tally("a", [], [1, 2], low=9)], "a dropped all 2 documents that reached it; the threshold is 9, no value"),
        ([tally("a", [3], [1], low=2, high=90)], "No value comes near a threshold: a (the threshold is 90, no value"),
        ([tally("a", [1], []), tally("b", [1], [])], "2 rules dropped nothing: a, b."),
    ],
)
def test_a_rule_that_decides_nothing_is_named(tallies, said):
    assert verdict_on(run_of(Observations(tallies))).warnings[0].startswith(said)


def test_a_rule_that_works_is_not_named():
    assert verdict_on(run_of(Observations([tally("a", [3, 8], [1], low=2)]))).warnings == ()


def test_a_source_that_lost_over_twice_the_average_is_named():
    seen = Observations(slices={"source": slices(web=(190, 10), wiki=(70, 30), forum=(50, 50), few=(0, 3))})
    [warning] = verdict_on(run_of(seen)).warnings
    assert warning == "'forum' in column source lost 50 % of its documents, most of them by words; the average is 23 %."


def test_texts_of_examples_are_on_the_page_as_text_and_not_at_all_if_not_wanted():
    example = Example(1.0, 7, HOSTILE, HOSTILE, "task", HOSTILE + "x" * 1_000_000)
    measured = tally(HOSTILE, [3], [1], low=2)
    measured.nearest = [Nearest("low", 2.0, [example], [example])]
    seen = Observations([measured], [Sample("filters", 1, HOSTILE, [example])], {HOSTILE: slices(**{HOSTILE: (1, 1)})})
    page = Report.of([run_of(seen)]).to_html()

    assert page.count("</style>") == 1
    assert "<script" not in page
    assert "\u202e" not in page
    assert page.count("&lt;script&gt;") > 6
    assert len(page) < 60_000
    assert rules_of(seen, {}, examples=False)[0].nearest == ()
    assert samples_of(seen, examples=False) == ()


def test_rules_of_one_name_are_compared_in_their_order():
    near, far = list(range(500)), [value + 5_000 for value in range(500)]
    a = run_of(Observations([tally("n", near, []), tally("n", far, []), tally("only_a", near, [])]))
    renamed = [tally("n", near, []), tally("n", near, [])]
    for one in renamed:
        one.stage = "filters_and_1_more"
    found = compare_runs(a, run_of(Observations(renamed)), configuration=[])

    assert [(pair.rule, pair.moved) for pair in found.rules] == [("n", False), ("n", True)]
    assert [pair.median_a for pair in found.moved] == [pytest.approx(5_250, rel=0.05)]


@pytest.mark.parametrize(("ones", "moved"), [(500, False), (530, False), (600, False), (700, True), (750, True)])
def test_a_distribution_has_moved_from_the_usual_mark_on(ones, moved):
    """With 600 of 1,000 in place of 500 the index is 0.04, with 700 it is 0.17."""
    a, b = (run_of(Observations([tally("n", [1] * many + [2] * (1_000 - many), [])])) for many in (500, ones))

    assert [pair.moved for pair in compare_runs(a, b, configuration=[]).rules] == [moved]
