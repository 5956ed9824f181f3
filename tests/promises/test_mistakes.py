"""A mistake is an error before anything starts, in under a second, and names the nearest right thing."""

import os
import time

import pytest
from tests.jsonl_files import contents, write_documents

from gristmill.backends.local import LocalExecutor, launch
from gristmill.config.recipe import Recipe
from gristmill.errors import ConfigError, NoInputError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_documents(tmp_path / "corpus" / "a.jsonl", [{"id": 1, "text": "a b c"}])
    return tmp_path


def run(source="corpus", *, text_field="text", **options):
    stages = [JsonlReader(source), ScoreFilter(WordCountFilter(), text_field=text_field), JsonlWriter("out")]
    return Pipeline("p", stages=stages).run(**options)


def recipe(text):
    return lambda: Recipe.parse(text, source="r.yaml").build()


MISTAKES = {
    "no input": (lambda: run("copus"), NoInputError, "did you mean 'corpus'?"),
    "wrong pattern": (lambda: run("corpus/*.json"), NoInputError, "a.jsonl"),
    "unknown column": (lambda: run(text_field="txt"), ConfigError, "did you mean 'text'?"),
    "unknown option": (
        lambda: JsonlReader("corpus", read_kwargs={"storage_option": {}}),
        ConfigError,
        "storage_options",
    ),
    "unknown mode": (lambda: JsonlWriter("out", mode="overwite"), ConfigError, "did you mean 'overwrite'?"),
    "unknown execution mode": (lambda: LocalExecutor(execution_mode="stream"), ConfigError, '"streaming" or "batch"'),
    "unknown recipe key": (recipe("name: r\nstage: []\n"), ConfigError, "did you mean 'stages'?"),
    "unknown stage": (recipe("name: r\nstages: [JsonlRaeder]\n"), ConfigError, "did you mean 'JsonlReader'?"),
    "unknown parameter": (
        recipe("name: r\nstages:\n  - JsonlReader: {file_path: x}\n"),
        ConfigError,
        "did you mean 'file_paths'?",
    ),
    "too little memory": (lambda: run(executor=LocalExecutor(memory_limit="1MB")), ConfigError, "memory_limit of at"),
}


@pytest.mark.parametrize(("mistake", "error", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found_at_once_with_the_nearest_right_thing(work, mistake, error, words):
    """No input matched, wrong path, unknown column, unknown option: an error in under a second that names it."""
    before, started = contents(work), process_seconds()

    with pytest.raises(error) as raised:
        mistake()
    assert words in str(raised.value)
    assert process_seconds() - started < 1
    assert contents(work) == before


def process_seconds():
    """Time this process and its children have worked: others on the machine do not count."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


@pytest.mark.parametrize("mistake", ["no input", "wrong pattern", "unknown column"])
def test_a_mistake_in_a_pipeline_starts_no_process(work, mistake, monkeypatch):
    def launched():
        raise AssertionError("a process was started")

    monkeypatch.setattr(launch.subprocess, "Popen", launched)
    call, error, _ = MISTAKES[mistake]

    with pytest.raises(error):
        call()
    assert not (work / "out").exists()


@pytest.mark.parametrize(
    "parameters",
    [
        {"num_workers": 1.5},
        {"num_workers": "2"},
        {"memory_limit": "banana"},
        {"gpu_memory_gb": -1.0},
        {"worker_max_lifetime_m": 0},
        {"worker_max_tasks": 0},
    ],
)
def test_an_executor_is_refused_when_it_is_made(parameters):
    [name] = parameters

    with pytest.raises(ConfigError, match=f"LocalExecutor: .*{name}"):
        LocalExecutor(**parameters)
