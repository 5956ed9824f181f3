"""A plan's fingerprint changes exactly when what the plan does changes."""

import hashlib
import json
import subprocess
import sys

import pyarrow as pa
import pytest
from tests.jsonl_files import write_documents

from gristmill.pipeline.compile import canonical, compile_chain, fingerprint
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.stages.text.filters import Filter, Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.tasks import DocumentBatch


def of(*stages):
    return compile_chain("p", list(stages), [DocumentBatch("b", pa.table({"n": [1]}))]).fingerprint


def function(source):
    """A function written in a file of its own."""
    scope = {"__name__": "user_code"}
    exec(compile(source, "user_code.py", "exec"), scope)
    return scope["f"]


def test_the_same_stages_made_twice_have_one_fingerprint():
    assert of(ScoreFilter(WordCountFilter(5))) == of(ScoreFilter(WordCountFilter(5)))


@pytest.mark.parametrize(
    "other",
    [
        ScoreFilter(WordCountFilter(6)),
        ScoreFilter(WordCountFilter(5), text_field="n"),
        ScoreFilter(WordCountFilter(5), invert=True),
        ScoreFilter([WordCountFilter(5), WordCountFilter(5)]),
    ],
)
def test_a_changed_threshold_or_parameter_changes_it(other):
    assert of(other) != of(ScoreFilter(WordCountFilter(5)))


BODY = "def f(x):\n    return x > 3\n"


@pytest.mark.parametrize(
    "changed",
    [
        "def f(x):\n    return x > 4\n",
        "def f(x):\n    return x < 3\n",
        "def f(x, y=1):\n    return x > 3\n",
        "def f(x):\n    return abs(x) > 3\n",
        "def f(x):\n    return (lambda y: y > 3)(x)\n",
    ],
)
def test_a_changed_function_body_changes_it(changed):
    assert of(Filter(function(changed), "n")) != of(Filter(function(BODY), "n"))


@pytest.mark.parametrize(
    "same",
    ["\n\n\n" + BODY, "# a comment\n" + BODY, "def f(x):\n\n    return x > 3  # why\n", "def other(): pass\n" + BODY],
)
def test_a_moved_line_or_a_comment_does_not(same):
    assert of(Filter(function(same), "n")) == of(Filter(function(BODY), "n"))


def above(least):
    return lambda x: x > least


def test_a_changed_closure_changes_it():
    assert of(Filter(above(3), "n")) != of(Filter(above(4), "n"))
    assert of(Filter(above(3), "n")) == of(Filter(above(3), "n"))


def test_a_changed_default_changes_it():
    def scored(weight):
        return function(f"def f(x, w={weight}):\n    return x * w\n")

    assert of(Score(scored(1), "s", text_field="n")) != of(Score(scored(2), "s", text_field="n"))


def stage_class(source):
    scope = {"ProcessingStage": ProcessingStage, "__name__": "user_stage"}
    exec(compile(source, "user_stage.py", "exec"), scope)
    return scope["_Own"]


def test_a_users_class_counts_with_its_code_its_settings_and_not_its_place():
    text = "class _Own(ProcessingStage):\n    least = 3\n    def process(self, task):\n        return task\n"
    fingerprint = of(stage_class(text)())

    assert of(stage_class("\n\n" + text)()) == fingerprint
    assert of(stage_class(text.replace("3", "4"))()) != fingerprint
    assert of(stage_class(text.replace("return task", "return [task]"))()) != fingerprint


def test_how_a_stage_runs_is_no_part_of_it():
    stage = ScoreFilter(WordCountFilter(5))

    assert of(stage.with_(batch_size=4, resources=Resources(cpus=2), num_workers=3)) == of(stage)


def test_running_a_stage_does_not_change_it():
    stage = ScoreFilter(WordCountFilter(1), text_field="n")
    before = of(stage)
    stage.process(DocumentBatch("b", pa.table({"n": ["a", ""]})))

    assert of(stage) == before


def test_other_inputs_change_it(tmp_path):
    path = tmp_path / "a.jsonl"
    stages = [JsonlReader(str(path)), ScoreFilter(WordCountFilter())]
    write_documents(path, [{"text": "a"}])
    before = compile_chain("p", stages, None).fingerprint
    write_documents(path, [{"text": "a"}, {"text": "b"}])

    assert compile_chain("p", stages, None).fingerprint != before


SCRIPT = """
import pyarrow as pa
from gristmill.pipeline.compile import compile_chain
from gristmill.stages.text.filters import Filter
from gristmill.tasks import DocumentBatch
WORDS = {"one", "two", "three", "four"}
def f(x, words=frozenset(WORDS)):
    return x in words or x in {"five", "six", "seven"}
def closing(words):
    return lambda x: x in words
stages = [Filter(f, "n"), Filter(closing(WORDS), "n"), Filter(closing({"b": 1, "a": {3, 2, 1}}), "n")]
print(compile_chain("p", stages, [DocumentBatch("b", pa.table({"n": [1]}))]).fingerprint)
"""


@pytest.mark.slow
def test_another_process_and_another_hash_seed_give_the_same():
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(found) == 1


def test_values_without_an_order_get_one():
    assert canonical({3, 1, 2}) == canonical({2, 3, 1}) == [1, 2, 3]
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1})


def test_a_value_that_holds_itself_ends_somewhere():
    endless = []
    endless.append(endless)

    assert "<list>" in repr(canonical(endless))


def _with_secrets(api_key, endpoint):
    def process(task, password="default-password", *, times=3):
        return task, api_key, endpoint, password, times

    return process


def test_secrets_in_defaults_and_closures_are_left_out():
    config = json.dumps(canonical(_with_secrets("key-of-closure", "https://me:pw@host")))

    assert "key-of-closure" not in config
    assert "default-password" not in config
    assert "https://***@host" in config
    assert config == json.dumps(canonical(_with_secrets("another", "https://you:word@host")))
    assert config != json.dumps(canonical(_with_secrets("another", "https://you:word@elsewhere")))


def test_a_keyword_default_is_part_of_what_a_function_does():
    def make(number):
        def scale(text, *, factor=number):
            return len(text) * factor

        return scale

    assert canonical(make(2)) != canonical(make(3))


@pytest.mark.parametrize("parts", [[], ["a"], ["a", 'b "c"', "é\n"]])
def test_a_fingerprint_is_that_of_the_list_whose_parts_come_one_by_one(parts):
    assert fingerprint(iter(parts)) == hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
