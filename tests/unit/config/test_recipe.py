"""A recipe becomes a pipeline, or an error that names recipe, stage, parameter and the nearest right name."""

import sys

import pytest

from gristmill.config.recipe import Recipe
from gristmill.errors import ConfigError
from gristmill.stages.text.filters import Filter, Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import BulletsFilter, MeanWordLengthFilter, WordCountFilter
from gristmill.stages.text.modifiers import LineRemover, Modify, PiiModifier, Slicer, UrlRemover
from gristmill.stages.text.modules import AddId, DocumentJoiner, DocumentSplitter

HEAD = "name: test\nstages:\n"


def build(stages, allow_modules=(), **values):
    return Recipe.parse(HEAD + stages, source="test.yaml").build(values, allow_modules=allow_modules).stages


@pytest.mark.parametrize(
    "text",
    [
        "- ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 5}}}",
        "- ScoreFilter: {filter_obj: {WordCountFilter: {min_words: '${n}'}}}",
        f"- ScoreFilter: {{filter_obj: {{_target_: {WordCountFilter.__module__}.WordCountFilter, min_words: 5}}}}",
        "- _target_: gristmill.stages.text.filters.ScoreFilter\n  filter_obj: {WordCountFilter: {min_words: 5}}",
        "- gristmill.stages.text.filters.ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 5}}}",
    ],
)
def test_every_way_to_write_a_stage_gives_the_same_stage(text):
    values = {"n": 5} if "${n}" in text else {}
    [stage] = build(text, **values)

    assert isinstance(stage, ScoreFilter)
    assert stage.filter_obj == WordCountFilter(min_words=5)


def test_a_list_of_filters_may_mix_names_and_parameters():
    [stage] = build("- ScoreFilter: {filter_obj: [BulletsFilter, {MeanWordLengthFilter: {min_mean_word_length: 2}}]}")

    assert stage.filter_obj == [BulletsFilter(), MeanWordLengthFilter(min_mean_word_length=2)]


@pytest.mark.parametrize(
    ("modifiers", "expected"),
    [
        ("UrlRemover", UrlRemover()),
        ("{Slicer: {left: 1}}", Slicer(1)),
        ("[UrlRemover, PiiModifier: {supported_entities: [US_SSN]}]", [UrlRemover(), PiiModifier("en", ["US_SSN"])]),
        ("[{LineRemover: {patterns: [a, b]}}]", [LineRemover(["a", "b"])]),
    ],
)
def test_modifiers_are_named_as_filters_are(modifiers, expected):
    [stage] = build(f"- Modify: {{modifier_fn: {modifiers}}}")

    assert stage.modifier_fn == expected


def test_modules_and_lists_of_fields_may_be_in_a_recipe():
    stages = build(
        "- AddId: {id_field: id, by: content}\n"
        "- DocumentSplitter: {separator: '|'}\n- DocumentJoiner: {separator: '|'}\n"
        "- Modify: {modifier_fn: [builtins.len], input_fields: [[title, text]], output_fields: both}",
        allow_modules=["builtins"],
    )

    assert [type(stage) for stage in stages] == [AddId, DocumentSplitter, DocumentJoiner, Modify]
    assert stages[-1].inputs() == (["data"], ["title", "text"])


def test_groups_of_options_are_written_as_their_fields():
    [reader, source] = build(
        "- WikipediaDumpReader: {file_paths: dumps, limits: {max_wiki_bytes: 1000}}\n"
        "- WikipediaDownloadExtractStage: {language: de, transfer: {contact: me, max_disk: 10GB}}"
    )

    assert reader.limits.max_wiki_bytes == 1000
    assert source.downloader.transfer.max_disk == "10GB"


def test_a_function_is_named_by_its_path():
    score, keep = build(
        "- Score: {score_fn: builtins.len, score_field: chars}\n"
        "- Filter: {filter_fn: builtins.bool, filter_field: chars}",
        allow_modules=["builtins"],
    )

    assert isinstance(score, Score)
    assert isinstance(keep, Filter)
    assert (score.score_fn, keep.filter_fn) == (len, bool)


@pytest.mark.parametrize(
    "text",
    [
        "- BulletsOnly: {only_if: '${wanted}', filter_obj: BulletsFilter}",
        "- _target_: gristmill.stages.text.filters.ScoreFilter\n  only_if: ${wanted}\n  filter_obj: BulletsFilter",
    ],
)
@pytest.mark.parametrize(("wanted", "names"), [(True, ["bullets"]), ("yes", ["bullets"]), (None, []), (False, [])])
def test_a_stage_may_depend_on_a_variable(text, wanted, names):
    always = "- ScoreFilter: {filter_obj: WordCountFilter}\n"
    built = build(always + text.replace("BulletsOnly", "ScoreFilter"), wanted=wanted)

    assert [stage.name for stage in built] == ["word_count", *names]


def test_a_recipe_whose_stages_are_all_left_out_is_an_error():
    with pytest.raises(ConfigError, match=r"at least one stage; got none: each has an only_if without a value"):
        build("- ScoreFilter: {filter_obj: BulletsFilter, only_if: null}")


def test_with_changes_what_surrounds_a_stage():
    [stage] = build("- ScoreFilter: {filter_obj: BulletsFilter, with_: {name: first, resources: {cpus: 2}}}")

    assert (stage.name, stage.resources.cpus) == ("first", 2)


def test_defaults_of_variables_give_way_to_values():
    text = "name: t\nvariables: {n: 3}\nstages:\n- ScoreFilter: {filter_obj: {WordCountFilter: {min_words: '${n}'}}}"
    recipe = Recipe.parse(text, source="t")
    least = [recipe.build(values).stages[0].filter_obj.min_words for values in ({}, {"n": 9})]

    assert least == [3, 9]


def test_a_stage_of_the_users_own_module_is_found_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "my_own_stages.py").write_text(
        "from gristmill.stages.base import ProcessingStage\n"
        "class Bellow(ProcessingStage):\n"
        "    def __init__(self, mark='!'):\n        self.mark = mark\n"
        "    def process(self, task):\n        return task\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    [stage] = build("- my_own_stages.Bellow: {mark: '?'}", allow_modules=["my_own_stages"])

    assert stage.mark == "?"


STAGE = "- ScoreFilter: {filter_obj: {WordCountFilter: {%s}}}"
MISTAKES = {
    "an unknown key": (
        "stagse: []",
        r"recipe r\.yaml: expected one of the keys name.*; got 'stagse'; did you mean 'stages'\?",
    ),
    "no stages": ("name: x", r"recipe r\.yaml: expected 'stages' to be a list of at least one stage; got None"),
    "no mapping": ("- a", r"recipe r\.yaml: expected the keys name"),
    "no yaml": ("name: [", r"recipe r\.yaml: expected YAML; got a mistake in line 1"),
    "a key twice": ("name: a\nname: b", r"recipe r\.yaml: expected each key once; got 'name' again in line 2"),
    "an unknown stage": (
        HEAD + "- ScoreFiltr: {}",
        r"^recipe 'test', stage 1 ScoreFiltr: expected .*; got 'ScoreFiltr'; did you mean 'ScoreFilter'\?$",
    ),
    "an unknown parameter": (
        HEAD + "- ScoreFilter: {filter_ob: BulletsFilter}",
        r"^recipe 'test', stage 1 ScoreFilter: .*parameters \(.*\); got 'filter_ob'; did you mean 'filter_obj'\?$",
    ),
    "an unknown parameter of a filter": (
        HEAD + STAGE % "min_word: 5",
        r"stage 1 ScoreFilter: filter_obj WordCountFilter: .*got 'min_word'; did you mean 'min_words'\?$",
    ),
    "an unknown filter": (
        HEAD + "- ScoreFilter: {filter_obj: {WordCuontFilter: {}}}",
        r"stage 1 ScoreFilter: filter_obj: .* got 'WordCuontFilter'; did you mean 'WordCountFilter'\?$",
    ),
    "a wrong type": (
        HEAD + STAGE % "min_words: fifty",
        r"stage 1 ScoreFilter: filter_obj WordCountFilter: min_words: expected int; got 'fifty'$",
    ),
    "a missing parameter": (
        HEAD + "- ScoreFilter: {}",
        r"stage 1 ScoreFilter: expected a value for filter_obj; got none$",
    ),
    "an unset variable": (
        HEAD + STAGE % "min_words: '${least}'",
        r"recipe 'test', stage 1: expected a value for \$\{least\}; it is not set \(--set least=VALUE\)",
    ),
    "parameters beside the name": (
        HEAD + "- ScoreFilter:\n  filter_obj: BulletsFilter",
        r"got the keys \['ScoreFilter', 'filter_obj'\] \(indent the parameters below the stage's name\)",
    ),
    "a module nobody allowed": (
        HEAD + "- nowhere.ScoreFiltr",
        r"got 'nowhere\.ScoreFiltr'; did you mean 'ScoreFilter'\? .*--allow-module nowhere, or in Python allow_modules",
    ),
    "an environment to install": (
        HEAD + "- ScoreFilter: {filter_obj: BulletsFilter, with_: {runtime_env: {pip: [x]}}}",
        r"with_: expected runtime_env in Python.* a recipe is data$",
    ),
    "an unknown attribute": (
        HEAD + "- gristmill.stages.text.filters.ScorFilter",
        r"to define 'ScorFilter'; it does not; did you mean 'ScoreFilter'\?",
    ),
    "Norwegian": (
        HEAD + "- WikipediaDownloadExtractStage: {language: no}",
        r"language: expected str; got False\. Put it in quotes: a bare number, date, yes, no, on or off is not text",
    ),
    "a date": (
        HEAD + "- WikipediaDownloadExtractStage: {dump_date: 20240101}",
        r"dump_date: expected str or None; got 20240101\. Put it in quotes",
    ),
    "a filter as a stage": (HEAD + "- BulletsFilter", r"expected a ProcessingStage; got .*BulletsFilter"),
    "an unknown property": (
        HEAD + "- ScoreFilter: {filter_obj: BulletsFilter, with_: {resource: {}}}",
        r"with_: expected one of name, .*; got 'resource'; did you mean 'resources'\?",
    ),
    "what the constructor refuses": (
        HEAD + "- ScoreFilter: {filter_obj: {SubstringFilter: {substring: a, position: middle}}}",
        r"position: expected 'prefix' or 'suffix' or 'any'; got 'middle'$",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_in_full(text, message):
    with pytest.raises(ConfigError, match=message):
        Recipe.parse(text, source="r.yaml").build()


def test_a_value_for_no_variable_of_the_recipe_is_refused():
    recipe = Recipe.parse(HEAD + STAGE % "min_words: '${least}'", source="t")

    with pytest.raises(
        ConfigError, match=r"expected one of its variables \(least\); got 'leest'; did you mean 'least'\?"
    ):
        recipe.build({"leest": 1, "least": 2})


def test_a_recipe_filled_in_builds_the_same_pipeline_anywhere_and_holds_no_secret(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stages = """stages:
      - JsonlReader: {file_paths: "${input}", read_kwargs: {storage_options: {token: hidden-token}}}
      - ScoreFilter: {filter_obj: {SubstringFilter: {substring: "${word} $${x}", position: any}}}
      - JsonlWriter: {path: "${output}"}
    """
    recipe = Recipe.parse(f"name: r\n{stages}", source="t")
    text = recipe.build({"input": ["raw/*.jsonl", "s3://b/c"], "output": "out", "word": "é ${y}"}).recipe
    again = Recipe.parse(text, source="again")

    assert again.variable_names() == set()
    reader, score_filter, writer = again.substituted()
    assert reader["JsonlReader"]["file_paths"] == [f"{tmp_path}/raw/*.jsonl", "s3://b/c"]
    assert score_filter["ScoreFilter"]["filter_obj"]["SubstringFilter"]["substring"] == "é ${y} ${x}"
    assert writer["JsonlWriter"]["path"] == f"{tmp_path}/out"
    assert "hidden-token" not in text
