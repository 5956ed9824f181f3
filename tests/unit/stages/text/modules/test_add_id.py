"""Ids are unique, stable, and never replace others unasked."""

import json

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, StageError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.modules import AddId
from gristmill.tasks import DocumentBatch


def batch(*texts, **columns):
    return DocumentBatch("demo", pa.table({"text": pa.array(texts, pa.string()), **columns}))


def ids(stage, documents):
    return stage.process(documents).column(stage.id_field).to_pylist()


def read_all(directory):
    return [json.loads(line) for path in sorted(directory.glob("*.jsonl")) for line in path.read_text().splitlines()]


def test_outside_of_a_run_a_dataset_gives_the_name():
    assert ids(AddId("id"), batch("a", "b")) == ["demo_0", "demo_1"]
    assert ids(AddId("id", "web"), batch("a")) == ["web_demo_0"]


def test_an_empty_batch_has_the_column():
    assert AddId("id").process(batch()).column("id").type == pa.string()


def test_ids_by_content_go_with_the_text():
    first, second, missing, again = ids(AddId("id", by="content"), batch("a", "b", None, "a"))

    assert first == again == "a96faf705af16834e6c632b61e964e1f"
    assert len({first, second, missing}) == 3


def test_ids_that_are_there_stay_unless_told():
    with pytest.raises(StageError, match=r"expected no column 'id' yet, or overwrite=True; it is there"):
        AddId("id").process(batch("a", id=pa.array(["x"])))

    assert ids(AddId("id", overwrite=True), batch("a", id=pa.array(["x"]))) == ["demo_0"]


def test_ids_that_are_there_are_found_before_the_run(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": 1, "text": "a"}\n')
    pipeline = Pipeline("ids", stages=[JsonlReader(str(tmp_path / "in.jsonl")), AddId("id")])

    with pytest.raises(ConfigError, match="add_id: expected no column 'id' yet; jsonl_reader has it"):
        pipeline.run(LocalExecutor(num_workers=0))


def test_an_unknown_source_of_ids_is_refused():
    with pytest.raises(ConfigError, match=r"expected by to be one of .*; got 'contents'; did you mean 'content'\?"):
        AddId("id", by="contents")


@pytest.mark.slow
def test_ids_do_not_depend_on_the_number_of_workers(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.jsonl").write_text("".join(f'{{"text": "{n}"}}\n' for n in range(40)))
    found = []
    for workers in (0, 1, 2):
        out = tmp_path / f"out{workers}"
        stages = [JsonlReader(str(tmp_path / "in"), blocksize=200), AddId("id", "x"), JsonlWriter(str(out))]
        Pipeline("ids", stages=stages).run(LocalExecutor(num_workers=workers))
        found.append(read_all(out))

    assert found[0] == found[1] == found[2]
    assert len({document["id"] for document in found[0]}) == 120
