"""Every shipped recipe builds; the ones of published rule sets hold the thresholds the classes have by default."""

import pytest

from gristmill.config.shipped import find_recipe
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.rules import (
    ApplyRules,
    C4Quality,
    DclmGopherQuality,
    DclmGopherRepetition,
    DolmaGopher,
    FineWebQuality,
    GopherQuality,
    GopherRepetition,
    RefinedWebLines,
)

FINEWEB = [GopherRepetition(), GopherQuality(), C4Quality(filter_no_terminal_punct=False)]
EXPECTED = {
    "gopher-datatrove": [GopherRepetition(), GopherQuality()],
    "c4": [C4Quality()],
    "fineweb": [*FINEWEB, FineWebQuality()],
    "fineweb-paper": [*FINEWEB, FineWebQuality(char_duplicates_ratio=0.1)],
    "gopher-dolma": [DolmaGopher()],
    "gopher-dclm": [DclmGopherQuality(), DclmGopherRepetition()],
    "refinedweb": [DclmGopherQuality(), DclmGopherRepetition(), RefinedWebLines()],
}


def stages(name, kind):
    pipeline = find_recipe(name).build({"input": "in", "output": "out"})
    return [stage for stage in pipeline.stages if isinstance(stage, kind)]


def plain(rules):
    """Thresholds, lists and tuples alike: a recipe has lists."""
    return [(type(each), each.rules()) for each in rules]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_rule_set_recipe_has_the_published_thresholds(name):
    [stage] = stages(name, ApplyRules)

    assert plain(stage.rules) == plain(EXPECTED[name])


@pytest.mark.parametrize(("name", "count"), [("english-heuristics", 28), ("multilingual-heuristics", 25)])
def test_the_heuristic_recipes_have_all_their_filters(name, count):
    [stage] = stages(name, ScoreFilter)

    assert len(stage.filter_obj) == count


def test_the_multilingual_recipe_is_the_english_one_without_what_needs_english():
    [english], [multilingual] = (stages(f"{kind}-heuristics", ScoreFilter) for kind in ("english", "multilingual"))
    left_out = [each for each in english.filter_obj if each not in multilingual.filter_obj]

    assert {type(each).__name__ for each in left_out} == {
        "NonAlphaNumericFilter",
        "WordsWithoutAlphabetsFilter",
        "CommonEnglishWordsFilter",
    }
