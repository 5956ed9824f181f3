"""Files of at most so many bytes: cut in the same places whatever the workers, with everything in them, once."""

import gzip
import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import ArrowWriter, JsonlReader, JsonlWriter, ParquetReader, ParquetWriter
from gristmill.stages.text.io.writer.document_writer import cut_lines, cut_table

HERE = LocalExecutor(num_workers=0)
MOST = 2000


@pytest.fixture
def source(tmp_path):
    """Two files of many short documents, one of a few and one document that is too long for any file."""
    for file in range(2):
        rows = [{"id": f"{file}-{n}", "text": f"word {n} " * (n % 9)} for n in range(200)]
        write_documents(tmp_path / "in" / f"{file}.jsonl", rows)
    write_documents(
        tmp_path / "in" / "few.jsonl", [{"id": "few", "text": "one two three"}, {"id": "x", "text": "y " * 3000}]
    )
    return tmp_path / "in"


def run(source, writer, executor=HERE, **options):
    stages = [JsonlReader(str(source)), ScoreFilter(WordCountFilter(min_words=2)), writer]
    return Pipeline("cut", stages=stages).run(executor, quiet=True, **options)


@given(st.lists(st.lists(st.integers(0, 12), max_size=5), max_size=5), st.integers(1, 40))
def test_lines_are_cut_as_late_as_they_fit_and_nothing_is_lost(chunks, most):
    encoded = [b"".join(b"x" * length + b"\n" for length in chunk) for chunk in chunks]
    parts = [(count, b"".join(map(bytes, held))) for count, held in cut_lines(encoded, most)]

    assert b"".join(part for _, part in parts) == b"".join(encoded)
    assert all(part.count(b"\n") == count for count, part in parts)
    assert all(len(part) <= most or count == 1 for count, part in parts)
    for (_, before), (_, after) in itertools.pairwise(parts):
        assert len(before) + after.index(b"\n") + 1 > most


@given(st.lists(st.text(st.sampled_from("aé"), max_size=30), max_size=20), st.integers(1, 300))
def test_rows_are_cut_as_late_as_they_fit_and_nothing_is_lost(texts, most):
    table = pa.table({"text": pa.array(texts, pa.string())})
    parts = list(cut_table(table, most))

    assert [text for part in parts for text in part.column("text").to_pylist()] == texts
    assert all(part.nbytes <= most or part.num_rows == 1 for part in parts)


def test_no_file_is_larger_unless_one_document_is(source, tmp_path):
    result = run(source, JsonlWriter(str(tmp_path / "out"), max_file_bytes=MOST))
    run(source, JsonlWriter(str(tmp_path / "whole")))
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "out").glob("*.jsonl")}

    assert [name for name, size in sizes.items() if size > MOST] == ["few.0001.jsonl"]
    assert "0.0000.jsonl" in sizes
    assert len(sizes) == len(result.output_files) > 10
    assert result.written == len(read_documents(tmp_path / "out"))
    for name in ("0", "1", "few"):
        parts = sorted((tmp_path / "out").glob(f"{name}.*.jsonl"))
        assert b"".join(part.read_bytes() for part in parts) == (tmp_path / "whole" / f"{name}.jsonl").read_bytes()


def test_what_fits_into_one_file_keeps_its_name(source, tmp_path):
    run(source, JsonlWriter(str(tmp_path / "out"), max_file_bytes="10MB"))

    assert sorted(path.name for path in (tmp_path / "out").glob("*.jsonl")) == ["0.jsonl", "1.jsonl", "few.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [JsonlWriter, ParquetWriter, ArrowWriter])
def test_workers_do_not_change_a_byte(source, tmp_path, kind):
    for workers in (0, 3):
        run(source, kind(str(tmp_path / f"{workers}"), max_file_bytes=MOST), LocalExecutor(num_workers=workers))

    assert len(contents(tmp_path / "0")) > 5
    assert contents(tmp_path / "0") == contents(tmp_path / "3")


def test_parquet_files_are_cut_by_rows_and_read_again(source, tmp_path):
    result = run(source, ParquetWriter(str(tmp_path / "out"), max_file_bytes="4kB"))
    ids = [key for file in sorted(result.output_files) for key in pq.read_table(file).column("id").to_pylist()]
    reader = ParquetReader(str(tmp_path / "out"))
    again = Pipeline("again", stages=[reader, JsonlWriter(str(tmp_path / "again"))]).run(HERE, quiet=True)

    assert len(ids) == len(set(ids)) == result.written == again.written


def test_bytes_count_before_they_are_compressed(source, tmp_path):
    run(source, JsonlWriter(str(tmp_path / "out"), "jsonl.gz", max_file_bytes=MOST))
    texts = [gzip.decompress(path.read_bytes()) for path in (tmp_path / "out").glob("*.jsonl.gz")]

    assert len(texts) > 10
    assert sum(len(text) > MOST for text in texts) == 1


def test_a_run_with_another_size_is_refused(source, tmp_path):
    run(source, JsonlWriter(str(tmp_path / "out"), max_file_bytes=MOST))
    before = contents(tmp_path / "out")

    assert run(source, JsonlWriter(str(tmp_path / "out"), max_file_bytes=MOST)).already_finished
    with pytest.raises(ResumeRefused, match="max_file_bytes"):
        run(source, JsonlWriter(str(tmp_path / "out"), max_file_bytes=MOST + 1))
    run(source, JsonlWriter(str(tmp_path / "out")), fresh=True)
    assert len(contents(tmp_path / "out")) == 3 < len(before)


def test_a_file_that_is_gone_is_made_again_with_the_others_of_its_partition(source, tmp_path):
    run(source, JsonlWriter(str(tmp_path / "out"), max_file_bytes=MOST))
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "1.0003.jsonl").unlink()
    run(source, JsonlWriter(str(tmp_path / "out"), max_file_bytes=MOST))

    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("size", [0, -1, "a lot"])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(ConfigError, match="max_file_bytes"):
        JsonlWriter("out", max_file_bytes=size)


def test_a_recipe_can_say_it(source, tmp_path):
    from gristmill.config.run import create_pipeline_from_yaml

    stages = [
        {"JsonlReader": {"file_paths": "${input}"}},
        {"JsonlWriter": {"path": "${output}", "max_file_bytes": "1kB"}},
    ]
    made = create_pipeline_from_yaml({"name": "cut", "stages": stages}, input=str(source), output=str(tmp_path / "out"))
    result = made.run(HERE, quiet=True)

    assert len(result.output_files) > 10
    assert json.loads((tmp_path / "out" / "0.0000.jsonl").read_text().splitlines()[0])["id"] == "0-0"
