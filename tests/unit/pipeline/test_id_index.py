"""Filters of ids: never a wrong "no", seldom a wrong "maybe", and nothing about a file that has changed."""

import gzip
import json

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.pipeline.id_index import index_ids, may_hold
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter

pytestmark = pytest.mark.slow
FILES, DOCUMENTS = 20, 500


@pytest.fixture
def home(tmp_path):
    """A finished run over some files, indexed."""
    (tmp_path / "in").mkdir()
    for part in range(FILES):
        lines = [json.dumps({"id": f"{part}-{n}é", "url": f"u{part}", "text": "t"}) for n in range(DOCUMENTS)]
        content = "\n".join([*lines, "broken", "[1]", '{"text": "nameless"}', '{"id": 7}'])
        if part:
            (tmp_path / "in" / f"{part:02d}.jsonl").write_text(content)
        else:
            (tmp_path / "in" / "00.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    pipeline(tmp_path).run(LocalExecutor(num_workers=0), max_quarantined=None, quiet=True)
    assert index_ids(tmp_path / "out" / ".gristmill") == FILES * (DOCUMENTS + 1)
    return tmp_path


def pipeline(home):
    return Pipeline("p", stages=[JsonlReader(str(home / "in")), JsonlWriter(str(home / "out"))])


def test_the_file_that_holds_an_id_always_says_maybe_and_few_others_do(home):
    run = home / "out" / ".gristmill"
    wrong = 0
    for part in range(FILES):
        for n in range(0, DOCUMENTS, 50):
            said = {path.rpartition("/")[2]: may for path, may in may_hold(run, f"{part}-{n}é").items()}
            assert len(said) == FILES
            assert said.pop(f"{part:02d}.jsonl" if part else "00.jsonl.gz")
            wrong += sum(said.values())

    assert wrong <= 0.02 * FILES * FILES * 10  # 0.8 % are to be expected
    assert all(may_hold(run, "7").values())


def test_a_document_is_explained_from_its_file_alone_and_found_without_its_filter_too(home):
    run = home / "out" / ".gristmill"
    for other in (home / "in").iterdir():
        if other.name != "03.jsonl":
            other.write_text("")  # whoever reads these finds nothing, and their filters say nothing of them
    found = pipeline(home).explain(run, "3-7é")
    assert found.source is not None
    assert (found.source.path, found.source.line) == (f"{home}/in/03.jsonl", 8)

    (home / "in" / "03.jsonl").write_text('{"id": "new", "text": "t"}\n')
    found = pipeline(home).explain(run, "new")
    assert found.source is not None


def test_a_value_of_another_field_is_found_in_spite_of_the_filters(home):
    found = pipeline(home).explain(home / "out", "u4")

    assert found.source is not None
    assert found.source.path.endswith("04.jsonl")


def test_a_damaged_filter_says_nothing(home):
    run = home / "out" / ".gristmill"
    first, second, *_ = sorted((run / "ids").iterdir())
    first.write_bytes(b"\xff")
    second.write_bytes(second.read_bytes()[:-1])

    assert len(may_hold(run, "x")) == FILES - 2
