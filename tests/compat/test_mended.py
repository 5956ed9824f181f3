"""What went wrong when scripts written for another package were first tried with only its name changed."""

import pytest
from tests.jsonl_files import write_documents

from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import Filter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.filters.heuristic.code import HTMLBoilerplateFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter, ParquetReader, ParquetWriter


@pytest.fixture
def raw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_documents(tmp_path / "home" / "raw" / "part.jsonl", [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}])
    return tmp_path


@pytest.mark.slow
def test_a_tilde_is_the_home_directory_for_reader_writer_and_run_directory(raw):
    Pipeline("x", stages=[JsonlReader("~/raw"), JsonlWriter("~/out")]).run()

    assert (raw / "home" / "out" / ".gristmill" / "ledger.jsonl").is_file()
    assert not (raw / "~").exists()


@pytest.mark.slow
@pytest.mark.parametrize("reader", [JsonlReader, ParquetReader])
def test_a_misspelt_field_is_refused_with_the_nearest_name(raw, reader):
    path = "~/raw" if reader is JsonlReader else "~/tables"
    if reader is ParquetReader:
        Pipeline("x", stages=[JsonlReader("~/raw"), ParquetWriter("~/tables")]).run()
    with pytest.raises(ConfigError, match=r"^\w+_reader: expected fields that documents have.*'txt'; did you mean"):
        Pipeline("x", stages=[reader(path, fields=["id", "txt"]), JsonlWriter("out")]).plan()


@pytest.mark.slow
def test_a_field_that_only_some_files_have_is_read(raw):
    write_documents(raw / "home" / "raw" / "rest.jsonl", [{"id": "c", "text": "three", "url": "u"}])
    result = Pipeline("x", stages=[JsonlReader("~/raw", fields=["id", "url"])]).run()

    assert sorted(str(url) for task in result for url in task.column("url").to_pylist()) == ["None", "None", "u"]


@pytest.mark.parametrize("field", [None, "a", ["a"], ["a", "b", "c"], ["a", None]])
def test_as_many_columns_as_filters_are_wanted(field):
    message = r"^Filter: expected a list of 2 names, one for each filter; got"
    with pytest.raises(ConfigError, match=message):
        Filter([WordCountFilter(2), WordCountFilter(3)], field)


def test_indentation_between_tags_is_not_text():
    rows = "\n".join(f"{' ' * 40}<tr>\n{' ' * 44}<td>{n:04}</td>\n{' ' * 40}</tr>" for n in range(100))
    page = f"<html><body><table>\n{rows}\n</table></body></html>"
    score = HTMLBoilerplateFilter().score_document(page)

    assert score == pytest.approx(499 / len(page))  # a hundred words of four characters, and what is between them
    assert not HTMLBoilerplateFilter().keep_document(score)


def test_options_that_ask_for_what_is_done_anyway_are_accepted():
    JsonlReader("raw", read_kwargs={"engine": "pyarrow", "orient": "records", "lines": True})
    JsonlWriter("out", write_kwargs={"orient": "records", "lines": True, "force_ascii": False})
    ParquetWriter("out", write_kwargs={"index": False})
    with pytest.raises(ConfigError, match=r"expected write_kwargs to have keys of .*; got 'force_ascii'"):
        JsonlWriter("out", write_kwargs={"force_ascii": True})
