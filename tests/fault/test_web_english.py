"""The recipe `web-english` does in one run what its steps do one after another, and a kill changes nothing."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.fault.processes import finish, wait_until
from tests.jsonl_files import contents, read_documents

from gristmill.backends.local import LocalExecutor
from gristmill.config.recipe import Recipe
from gristmill.config.shipped import find_recipe, recipe_path
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow

pytestmark = pytest.mark.slow

MAKE_CORPUS = Path(__file__).parents[2] / "examples" / "demo" / "make_corpus.py"
HERE = LocalExecutor(num_workers=0)
PHASES = ("segment-1", "search/fuzzy_deduplication/sketch", "segment-2")
DEADLINE_S = 200


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Real text with what the web adds to it, and a benchmark: the demo's."""
    directory = tmp_path_factory.mktemp("corpus")
    subprocess.run([sys.executable, MAKE_CORPUS, directory], check=True)
    return directory


def values(corpus, out):
    benchmarks = str(corpus / "benchmarks")
    return {"input": str(corpus / "raw"), "output": str(out), "benchmarks": benchmarks, "id_field": "id"}


@pytest.fixture(scope="module")
def in_one(corpus, tmp_path_factory):
    """The recipe, in this process."""
    out = tmp_path_factory.mktemp("in-one") / "out"
    return find_recipe("web-english").build(values(corpus, out)).run(HERE, quiet=True), out


def _has_lines(ledger):
    return ledger.exists() and ledger.stat().st_size > 0


def part_of_recipe(first, last, corpus, source, out):
    """Some stages of the recipe between a reader and a writer: what a user would run as a step of its own."""
    document = yaml.safe_load(recipe_path("web-english").read_text())
    names = [next(iter(stage)) for stage in document["stages"]]
    inner = document["stages"][names.index(first) : names.index(last) + 1]
    document["stages"] = [document["stages"][0], *inner, document["stages"][-1]]
    recipe = Recipe.from_document(document, source="step")
    return recipe.build(values(corpus, out) | {"input": str(source)}).run(HERE, quiet=True)


def test_one_run_gives_the_bytes_of_its_steps_one_after_another(corpus, in_one, tmp_path):
    result, out = in_one
    filtered, exact, fuzzy = (tmp_path / name for name in ("filtered", "exact", "fuzzy"))
    part_of_recipe("ScoreFilter", "ApplyRules", corpus, corpus / "raw", filtered)
    options = {"input_filetype": "jsonl", "id_field": "id"}
    ExactDeduplicationWorkflow(str(exact), str(filtered), **options).run(executor=HERE)
    FuzzyDeduplicationWorkflow(None, str(fuzzy), str(exact / "deduplicated"), **options).run(executor=HERE)
    part_of_recipe("Decontaminate", "Modify", corpus, fuzzy / "deduplicated", tmp_path / "steps")

    assert contents(tmp_path / "steps") == contents(out)
    assert result.written == len(read_documents(out)) > 200


def test_every_step_does_something_and_the_books_balance(in_one):
    result, out = in_one

    assert result.balanced
    assert result.quarantined == 12
    assert set(result.dropped) == {
        "language", "quality_rules", "exact_deduplication", "fuzzy_deduplication", "decontaminate",
    }  # fmt: skip
    texts = [document["text"] for document in read_documents(out)]
    assert {document["language"] for document in read_documents(out)} == {"en"}
    assert any("<EMAIL_ADDRESS>" in text for text in texts)
    assert not any("@example.org" in text or "escape history" in text for text in texts)


@pytest.mark.parametrize("workers", [1, 4])
def test_any_number_of_workers_gives_the_same_bytes(corpus, in_one, tmp_path, workers):
    pipeline = find_recipe("web-english").build(values(corpus, tmp_path / "out"))
    pipeline.run(LocalExecutor(num_workers=workers), quiet=True)

    assert contents(tmp_path / "out") == contents(in_one[1])


@pytest.mark.fault
def test_a_run_killed_in_one_phase_after_another_gives_the_same_bytes(scene, corpus, in_one):
    out = scene.work / "out"
    given = {name: value for name, value in values(corpus, out).items() if name not in ("input", "output")}
    options = [f"--set={name}={value}" for name, value in given.items()]
    command = ("-m", "gristmill", "run", "web-english", "-i", corpus / "raw", "-o", out, "--workers", "2", *options)
    for phase in PHASES:
        program = scene.start(*command)
        ledger = out / ".gristmill" / phase / "ledger.jsonl"
        has_begun = partial(_has_lines, ledger)
        assert wait_until(has_begun, what=phase, program=program, deadline_s=DEADLINE_S)
        program.kill()
        program.communicate()
    finish(scene.start(*command), deadline_s=DEADLINE_S)

    assert contents(out) == contents(in_one[1])


def test_steps_that_are_not_wanted_are_left_out(corpus, tmp_path):
    wanted = values(corpus, tmp_path / "out") | {"benchmarks": None, "pii": False}
    pipeline = find_recipe("web-english").build(wanted)

    assert [stage.name for stage in pipeline.stages][-3:] == [
        "exact_deduplication",
        "fuzzy_deduplication",
        "jsonl_writer",
    ]
    assert "only_if" not in pipeline.recipe
