"""Repeated lines and paragraphs go, the first occurrence and everything else stays."""

import pytest
from tests.jsonl_files import read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.deduplication.part_dedup import PartDeduplicationWorkflow
from gristmill.errors import ConfigError

HERE = LocalExecutor(num_workers=0)


def deduplicated(tmp_path, texts, **options):
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    write_documents(tmp_path / "in" / "a.jsonl", rows[::2])
    write_documents(tmp_path / "in" / "b.jsonl", rows[1::2])
    result = PartDeduplicationWorkflow(str(tmp_path / "out"), str(tmp_path / "in"), **options).run(HERE)
    left = {row["id"]: row["text"] for row in read_documents(tmp_path / "out" / "deduplicated")}
    return left, result


def test_a_repeated_line_stays_where_it_came_first(tmp_path):
    left, result = deduplicated(tmp_path, ["menu\none", "menu\ntwo\n\nmenu ", "three"])
    assert left == {0: "menu\none", 1: "two\n", 2: "three"}
    assert result.metadata["num_parts_removed"] == 2


def test_a_document_that_loses_everything_is_dropped_and_counted(tmp_path):
    left, result = deduplicated(tmp_path, ["a\nb", "b\na"])
    assert left == {0: "a\nb"}
    assert (result.metadata["num_documents"], result.metadata["num_kept"]) == (2, 1)


def test_what_occurs_less_often_than_asked_stays(tmp_path):
    left, _ = deduplicated(tmp_path, ["x\n1", "x\n2", "y\n3", "y\n4", "y\n5"], min_count=3)
    assert left == {0: "x\n1", 1: "x\n2", 2: "y\n3", 3: "4", 4: "5"}


def test_short_lines_do_not_count(tmp_path):
    left, _ = deduplicated(tmp_path, ["ok\nlong line here", "ok\nlong line here\nend"], min_chars=5)
    assert left == {0: "ok\nlong line here", 1: "ok\nend"}


def test_paragraphs_are_separated_by_blank_lines(tmp_path):
    left, _ = deduplicated(tmp_path, ["p one\nline\n\np two", "p two\n\np one\nline\n\nnew"], unit="paragraph")
    assert left == {0: "p one\nline\n\np two", 1: "new"}


def test_documents_without_text_are_kept(tmp_path):
    left, _ = deduplicated(tmp_path, ["", "", None, "a"])
    assert left == {0: "", 1: "", 2: None, 3: "a"}


@pytest.mark.parametrize(("options", "message"), [({"unit": "word"}, "unit"), ({"min_count": 1}, "min_count ≥ 2")])
def test_a_mistake_is_named_before_anything_runs(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        PartDeduplicationWorkflow("out", "in", **options)
