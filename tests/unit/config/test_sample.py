"""A sample is the first documents in the order of the input, and its books are those of any run."""

import json
from pathlib import Path

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.config.sample import first_documents
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter

HERE = LocalExecutor(num_workers=0)


@pytest.fixture
def pipeline(tmp_path):
    (tmp_path / "raw").mkdir()
    for name, first in (("a", 0), ("b", 10)):
        lines = [json.dumps({"n": n, "text": "word " * n}) for n in range(first, first + 10)]
        (tmp_path / "raw" / f"{name}.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n")
    reader = JsonlReader(str(tmp_path / "raw"), files_per_partition=1)
    return Pipeline("sampled", stages=[reader, JsonlWriter(str(tmp_path / "out"))])


def numbers(tmp_path):
    return {
        f.name: [json.loads(x)["n"] for x in f.read_text().splitlines()] for f in (tmp_path / "out").glob("*.jsonl")
    }


@pytest.mark.parametrize(("wanted", "parts"), [(3, [[0, 1, 2]]), (10, [[*range(10)]]), (12, [[*range(10)], [10, 11]])])
def test_the_first_documents_are_taken_in_order(pipeline, tmp_path, wanted, parts):
    first_documents(pipeline, wanted).run(HERE)

    assert sorted(numbers(tmp_path).values()) == parts


def test_files_are_named_as_in_a_full_run(pipeline, tmp_path):
    first_documents(pipeline, 12).run(HERE)
    sampled = set(numbers(tmp_path))
    pipeline.run(HERE, fresh=True)

    assert sampled == set(numbers(tmp_path))


def test_more_than_there_are_is_all_there_are(pipeline):
    result = first_documents(pipeline, 1000).run(HERE)

    assert (result.read, result.written, result.quarantined) == (22, 20, 2)


def test_broken_lines_of_the_parts_read_are_quarantined(pipeline):
    result = first_documents(pipeline, 3).run(HERE)

    assert (result.read, result.written, result.quarantined) == (4, 3, 1)


def test_broken_lines_of_a_split_file_have_the_numbers_of_the_file(pipeline, tmp_path):
    pipeline.stages[0] = JsonlReader(str(tmp_path / "raw"), blocksize=100)
    result = first_documents(pipeline, 15).run(HERE)
    (record,) = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]

    assert (record["line"], record["block_start"]) == (11, None)


def test_a_misspelt_column_is_found_before_the_trial_starts(pipeline):
    misspelt = Pipeline("p", stages=[pipeline.stages[0], ScoreFilter(WordCountFilter(), text_field="txt")])

    with pytest.raises(ConfigError, match=r"expected a column 'txt'.*did you mean 'text'\?"):
        first_documents(misspelt, 3).plan()


def test_the_pipeline_itself_is_unchanged(pipeline):
    before = list(pipeline.stages)
    first_documents(pipeline, 3)

    assert pipeline.stages == before


def test_a_pipeline_without_a_reader_cannot_be_sampled():
    with pytest.raises(ConfigError, match="expected a reader as the first stage"):
        first_documents(Pipeline("p", stages=[ScoreFilter(WordCountFilter())]), 3)
