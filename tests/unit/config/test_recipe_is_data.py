"""A recipe from a stranger reaches gristmill's own parts and nothing else, and runs nothing before that is known."""

import itertools
import sys

import pytest

from gristmill.config.recipe import Recipe
from gristmill.config.run import create_executor_from_yaml, create_pipeline_from_yaml
from gristmill.errors import ConfigError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import DocumentFilter

HEAD = "name: test\nstages:\n"
READ = '- JsonlReader: {file_paths: "in", %s}\n'

TRACES = """
import pathlib
pathlib.Path("IMPORTED").touch()
from subprocess import getoutput
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import DocumentFilter, ScoreFilter

class StageNUMBER(ProcessingStage):
    def __init__(self, mark="MADE"):
        pathlib.Path(mark).touch()
    def process(self, task):
        return task

class Judge(DocumentFilter):
    def __init__(self, least=1):
        self.least = least

def score(text):
    return len(text)

def judge():
    return Judge(7)

Stage = StageNUMBER
"""

numbers = itertools.count()  # a class once defined stays known to the process, so each test has one of its own


class Here:
    """A working directory with a module that leaves a file when it is imported, and another when it is used."""

    def __init__(self, path):
        self.path = path
        self.module = f"traces_{next(numbers)}"
        self.add(self.module)

    def add(self, module):
        file = self.path / f"{module.replace('.', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(TRACES.replace("NUMBER", str(next(numbers))))

    def build(self, text, allow_modules=()):
        """Build a recipe in which `traces` stands for the module."""
        recipe = Recipe.parse(HEAD + text.replace("traces.", f"{self.module}."), source="r.yaml")
        return recipe.build(allow_modules=[name.replace("traces", self.module) for name in allow_modules]).stages

    def left_behind(self):
        return sorted(path.name for path in self.path.iterdir() if path.suffix != ".py" and path.name != "__pycache__")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Here(tmp_path)


ATTACKS = {
    "a function as a value": READ % 'blocksize: {_target_: subprocess.getoutput, cmd: "touch PWNED"}',
    "a function in a list": READ % 'fields: [{_target_: subprocess.getoutput, cmd: "touch PWNED"}]',
    "a class as a stage": '- {_target_: subprocess.Popen, args: [sh, -c, "touch PWNED"]}',
    "a class by its name": '- subprocess.Popen: {args: [touch, PWNED]}',
    "a module beside the recipe": "- _target_: traces.Stage",
    "a module beside the recipe by its name": "- traces.Stage",
    "a filter of it": "- ScoreFilter: {filter_obj: {traces.Judge: {least: 2}}}",
    "a filter of it in a list": "- ScoreFilter: {filter_obj: [BulletsFilter, traces.Judge]}",
    "a function of it": "- Score: {score_fn: traces.score, score_field: n}",
    "a function of Python's": "- Modify: {modifier_fn: builtins.exec}",
    "what a module of ours imports": "- Score: {score_fn: gristmill.stages.base.inspect.getfile, score_field: n}",
    "a function of ours": "- Score: {score_fn: gristmill.config.load_yaml.load_yaml, score_field: n}",
    "a function in the stages": "- Score: {score_fn: gristmill.stages.registry.register, score_field: n}",
    "what a stage's module imports": "- gristmill.stages.registry.ConfigError",
    "a path with tricks": "- ScoreFilter: {filter_obj: gristmill.stages..os.system}",
    "no path at all": "- ._",
}  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_what_is_not_ours_is_refused_before_it_is_imported_or_called(here, text):
    with pytest.raises(ConfigError):
        here.build(text)
    assert here.left_behind() == []


def test_nothing_is_made_before_the_last_stage_was_found_to_be_allowed(here):
    with pytest.raises(ConfigError, match="stage 2 Popen: expected a gristmill stage"):
        here.build("- traces.Stage\n- {_target_: subprocess.Popen, args: [touch, PWNED]}", allow_modules=["traces"])
    assert here.left_behind() == ["IMPORTED"]


def test_nothing_is_made_before_all_parameters_are_known_to_be_right(here):
    with pytest.raises(ConfigError, match="did you mean 'mark'"):
        here.build("- traces.Stage\n- traces.Stage: {marc: x}", allow_modules=["traces"])
    assert here.left_behind() == ["IMPORTED"]


def test_an_executor_is_ours_or_of_an_allowed_module(here):
    document = {"stages": ["ScoreFilter"], "executor": {"subprocess.Popen": {"args": ["touch", "PWNED"]}}}

    with pytest.raises(ConfigError, match="--allow-module subprocess"):
        create_executor_from_yaml(document)
    with pytest.raises(ConfigError, match=r"expected a BaseExecutor; got subprocess\.Popen"):
        create_executor_from_yaml(document, allow_modules=["subprocess"])
    assert here.left_behind() == []


def test_an_allowed_module_offers_what_it_defines(here):
    stages = here.build(
        "- traces.Stage: {mark: made}\n"
        "- ScoreFilter: {filter_obj: [{traces.Judge: {least: 3}}, traces.Judge, {_target_: traces.judge}]}\n"
        "- Score: {score_fn: traces.score, score_field: n}",
        allow_modules=["traces"],
    )

    assert [judge.least for judge in stages[1].filter_obj] == [3, 1, 7]
    assert stages[2].score_fn("four") == 4
    assert here.left_behind() == ["IMPORTED", "made"]


def test_an_allowed_module_does_not_offer_what_it_imports(here):
    with pytest.raises(ConfigError, match=r"to be defined in .* \(traces_\d+\); it comes from 'subprocess'"):
        here.build("- Score: {score_fn: traces.getoutput, score_field: n}", allow_modules=["traces"])


def test_a_package_that_is_allowed_includes_what_is_below_it_and_not_what_begins_alike(here):
    here.add("parts.inner")
    here.add("parts_of_others")

    assert here.build("- parts.inner.Stage", allow_modules=["parts"])
    with pytest.raises(ConfigError, match="--allow-module parts_of_others"):
        here.build("- parts_of_others.Stage", allow_modules=["parts"])


class Known(ProcessingStage):
    def process(self, task):
        return task


class KnownJudge(DocumentFilter):
    pass


def test_what_the_program_has_defined_itself_needs_no_leave(here):
    stages = here.build(f"- Known\n- {__name__}.Known\n- ScoreFilter: {{filter_obj: {__name__}.KnownJudge}}")

    assert [type(stage) for stage in stages[:2]] == [Known, Known]
    assert isinstance(stages[2].filter_obj, KnownJudge)


def test_a_class_of_ours_where_it_does_not_fit_is_not_made(here):
    with pytest.raises(ConfigError, match=r"blocksize: expected .*; got gristmill\..*\.BulletsFilter"):
        here.build(READ % "blocksize: {BulletsFilter: {}}")


def test_scripts_name_the_modules_they_allow(here):
    pipeline = create_pipeline_from_yaml({"stages": [f"{here.module}.Stage"]}, allow_modules=[here.module])

    assert [type(stage).__module__ for stage in pipeline.stages] == [here.module]


@pytest.mark.parametrize("base", ["DocumentModifier", "RuleSet"])
def test_what_a_package_has_for_subclasses_of_users_is_not_a_part_of_a_recipe(here, base):
    with pytest.raises(ConfigError, match=rf"expected the name of a stage, .* got '{base}'"):
        here.build(f"- {base}")
