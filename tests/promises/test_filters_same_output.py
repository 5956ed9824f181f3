"""Every filter, on documents that break other tools: the same bytes come out however it is run."""

import json
import os
import subprocess
import sys

import pytest
from tests.heuristic_filters import FILTERS, HARD_TEXTS
from tests.jsonl_files import contents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import (
    NonAlphaNumericFilter,
    RepeatedLinesFilter,
    RepeatingDuplicateNGramsFilter,
    RepeatingTopNGramsFilter,
    WordCountFilter,
)
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter

pytestmark = pytest.mark.slow

LINES = [
    *(json.dumps({"id": name, "text": text}, ensure_ascii=False) for name, text in HARD_TEXTS.items()),
    '{"id":"null", "text":null,"odd" :  1.50}',
    '{"id":"missing","n":1e3}',
    '{"id":"lone surrogates","text":"\\ud800 a \\udfff b \\ud83d\\ude00","x":"\\u00e9"}',
    '{"id":"escapes","text":"\\u0000\\t\\/\\b a\\u0301 \\u05d0\\u05d1","text2":"é"}',
    json.dumps({"id": "10 MB on one line", "text": "word and other " * 700_000}),
    json.dumps({"id": "a million lines", "text": "line\n" * 1_000_000}),
    *(json.dumps({"id": n, "text": f"{'the word is ' * (n % 60)}{n} and that, with more.\n" * 3}) for n in range(300)),
]


def stages(source, out):
    return [
        JsonlReader(str(source), blocksize="1MB"),
        Score(list(FILTERS), [f"score_{k}" for k in range(len(FILTERS))]),
        ScoreFilter(WordCountFilter(min_words=0, max_words=3_000_000)),
        ScoreFilter([NonAlphaNumericFilter(0.9), RepeatedLinesFilter(0.1)], score_field=["share", None]),
        ScoreFilter(RepeatingTopNGramsFilter(3, 0.9)),
        ScoreFilter(RepeatingDuplicateNGramsFilter(5, 0.95)),
        JsonlWriter(str(out)),
    ]


def run(source, out, executor):
    result = Pipeline("hard", stages=stages(source, out)).run(executor, rejects_path=out / "rejects")
    return contents(out), result


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    source = tmp_path_factory.mktemp("hard") / "in"
    source.mkdir()
    for part in range(3):
        (source / f"{part}.jsonl").write_text("".join(f"{line}\n" for line in LINES[part::3]), encoding="utf-8")
    return source


@pytest.fixture(scope="module")
def reference(source, tmp_path_factory):
    return run(source, tmp_path_factory.mktemp("reference") / "out", LocalExecutor(num_workers=1))


def test_every_hard_document_is_kept_or_dropped_for_a_reason(reference):
    _, result = reference

    assert result.read == len(LINES)
    assert result.quarantined == 0
    assert 0 < result.written < len(LINES)


def test_fields_nobody_touched_are_byte_identical(reference):
    written = b"".join(reference[0].values())

    assert b'"text":null,"odd" :  1.50' in written
    assert b'"text":"\\ud800 a \\udfff b \\ud83d\\ude00","x":"\\u00e9"' in written
    assert b'"text":"\\u0000\\t\\/\\b a\\u0301 \\u05d0\\u05d1"' in written


EXECUTORS = {
    "two workers": LocalExecutor(num_workers=2),
    "four workers": LocalExecutor(num_workers=4),
    "stage after stage": LocalExecutor(num_workers=2, execution_mode="batch"),
}


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_kept_and_dropped_documents_are_the_same_bytes_whatever_runs_it(source, reference, executor, tmp_path):
    files, result = run(source, tmp_path / "out", executor)

    assert files == reference[0]
    assert result.dropped == reference[1].dropped


SCRIPT = """
import sys
from pathlib import Path
from gristmill.backends.local import LocalExecutor
from tests.promises.test_filters_same_output import run
run(Path(sys.argv[1]), Path(sys.argv[2]), LocalExecutor(num_workers=2))
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_hash_seed_does_not_matter_to_filters(source, reference, seed, tmp_path):
    path = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    out = tmp_path / "out"
    subprocess.run([sys.executable, "-c", SCRIPT, str(source), str(out)], env=environment, check=True)

    assert contents(out) == reference[0]
