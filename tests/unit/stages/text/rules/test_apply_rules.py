"""`ApplyRules` drops a document for the first rule it breaks, says why, and passes on what C4 made of its text."""

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.rules import ApplyRules, C4Quality, FineWebQuality, GopherQuality, GopherRepetition
from gristmill.tasks import DocumentBatch

pytestmark = pytest.mark.slow

PROSE = "The cat sat with the dog, and that was all there is to be said of it. "
LONG = """The mill stands where the river bends, below a hill that nobody has ever bothered to name.
Its wheel turns slowly in summer and with some violence once the snow begins to melt.
A miller must have patience, good ears and a back that does not complain too early.
Grain arrives in sacks of every size; what leaves has to be weighed twice and written down.
Visitors ask why stones are still dressed by hand, since a machine could do it in minutes.
He answers that stone and grain get along better when somebody listens to both of them."""


def batch(*texts):
    return DocumentBatch("d", pa.table({"id": list(range(len(texts))), "text": list(texts)}))


def apply(stage, *texts):
    stage.context.keep_rejects = True
    kept = stage.process(batch(*texts)).to_pyarrow()
    reasons = {
        row: rejected.reason
        for rejected in stage.context.rejects
        for row in rejected.items.to_pyarrow()["id"].to_pylist()
    }
    return dict(zip(kept["id"].to_pylist(), kept["text"].to_pylist(), strict=True)), reasons


def test_the_first_rule_that_is_broken_gives_the_reason():
    kept, reasons = apply(ApplyRules([GopherRepetition(), GopherQuality()]), LONG, PROSE * 9, "too short", "", None)

    assert kept == {0: LONG}
    assert reasons == {1: "top_4_gram", 2: "top_2_gram", 3: "empty", 4: "null_text"}


def test_a_reject_carries_the_value_and_the_condition_it_did_not_meet():
    stage = ApplyRules(GopherQuality())
    apply(stage, "nine words are not enough for Gopher, you know")

    [rejected] = stage.context.rejects
    assert (rejected.values, rejected.threshold) == ((9.0,), "50 ≤ words")


def test_later_sets_see_the_text_that_c4_left():
    text = "Menu\n" * 40 + LONG
    kept, reasons = apply(ApplyRules([C4Quality(), FineWebQuality()]), text)

    assert kept == {0: LONG}
    assert reasons == {}
    assert apply(ApplyRules(FineWebQuality()), text)[1] == {0: "short_line_ratio"}


def test_an_empty_batch_and_a_batch_that_loses_every_row_have_their_columns():
    stage = ApplyRules([GopherQuality(), C4Quality()])

    assert stage.process(batch("a").filter([False])).to_pyarrow().column_names == ["id", "text"]
    assert stage.process(batch("a", "b")).num_items == 0


def test_wrong_rules_are_named():
    with pytest.raises(ConfigError, match="ApplyRules: expected rules to be a RuleSet; got 'c4'"):
        ApplyRules("c4")
    with pytest.raises(ConfigError, match="expected at least one rule set; got an empty list"):
        ApplyRules([])
