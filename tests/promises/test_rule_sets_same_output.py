"""Rule sets keep the same documents, with the same bytes, whatever runs them: each worker has a memory of its own."""

import json
import random

import pytest
from tests.jsonl_files import contents
from tests.promises.test_filters_same_output import EXECUTORS

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.rules import ApplyRules, C4Quality, GopherQuality, GopherRepetition

pytestmark = pytest.mark.slow

WORDS = ["the", "of", "and", "that", "with", "(well-known)", "don't", "U.S.,", "x:)", "3.5km"]
STEMS = ["stone", "river", "cloud", "garden", "winter", "answer"]
DOCUMENTS = 400


def texts():
    chance = random.Random(4)
    for number in range(DOCUMENTS):
        words = chance.choices([*WORDS, *STEMS, *(f"{stem}{number % 97}" for stem in STEMS)], k=chance.randint(3, 200))
        yield "".join(word + chance.choice([" ", " ", " ", ". ", "!\n", "\n\n"]) for word in words)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    source = tmp_path_factory.mktemp("rules") / "in.jsonl"
    source.write_text("".join(json.dumps({"id": k, "text": text}) + "\n" for k, text in enumerate(texts())))
    return source


def run(source, out, executor):
    rules = ApplyRules(
        [GopherRepetition(), GopherQuality(max_non_alpha_words_ratio=0.6), C4Quality(filter_no_terminal_punct=False)]
    )
    stages = [JsonlReader(str(source), blocksize=20_000), rules, JsonlWriter(str(out))]
    result = Pipeline("rules", stages=stages).run(executor)
    return contents(out), result.written, result.dropped


@pytest.fixture(scope="module")
def reference(source, tmp_path_factory):
    return run(source, tmp_path_factory.mktemp("one") / "out", LocalExecutor(num_workers=1))


def test_some_documents_are_kept_and_some_dropped_for_different_reasons(reference):
    _, written, dropped = reference

    assert 0 < written < DOCUMENTS
    assert sum(map(len, dropped.values())) > 1


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_kept_documents_are_the_same_bytes(source, reference, executor, tmp_path):
    assert run(source, tmp_path / "out", executor) == reference
