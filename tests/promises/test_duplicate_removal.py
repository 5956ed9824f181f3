"""Removal on its own agrees with the identification before it, by place or by id."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.text.deduplication.removal_workflow import TextDuplicatesRemovalWorkflow

HERE = LocalExecutor(num_workers=0)
JSONL = {"input_filetype": "jsonl", "output_filetype": "jsonl"}


@pytest.fixture
def corpus(tmp_path):
    for file in range(3):
        rows = [{"id": file * 10 + row, "text": f"text {row % 4}"} for row in range(10)]
        write_documents(tmp_path / "in" / f"{file}.jsonl", rows)
    return tmp_path / "in"


@pytest.mark.parametrize("id_field", [None, "id"])
def test_identifying_and_removing_apart_gives_what_one_call_gives(corpus, tmp_path, id_field):
    options = {"input_path": str(corpus), "input_filetype": "jsonl", "id_field": id_field}
    ExactDeduplicationWorkflow(str(tmp_path / "whole"), **options).run(executor=HERE)
    ExactDeduplicationWorkflow(str(tmp_path / "ids"), perform_removal=False, **options).run(executor=HERE)
    ids = str(tmp_path / "ids" / "duplicates.parquet")
    by = {} if id_field is None else {"id_field": id_field}
    result = TextDuplicatesRemovalWorkflow(str(corpus), ids, str(tmp_path / "out"), **JSONL, **by).run(HERE)

    assert result.metadata["num_duplicates_removed"] == 26
    assert contents(tmp_path / "out") == contents(tmp_path / "whole" / "deduplicated")


def test_a_list_of_ones_own_ids_will_do(corpus, tmp_path):
    pq.write_table(pa.table({"bad": [3, 12]}), tmp_path / "bad.parquet")
    options = {**JSONL, "id_field": "id", "duplicate_id_field": "bad"}
    TextDuplicatesRemovalWorkflow(str(corpus), str(tmp_path / "bad.parquet"), str(tmp_path / "out"), **options).run(
        HERE
    )
    left = {row["id"] for row in read_documents(tmp_path / "out")}
    assert left == set(range(30)) - {3, 12}


@pytest.mark.parametrize("drop", [False, True])
def test_the_column_of_ids_is_dropped_if_asked(corpus, tmp_path, drop):
    pq.write_table(pa.table({"id": [3, 12]}), tmp_path / "bad.parquet")
    options = {**JSONL, "id_field": "id", "drop_id_field": drop}
    TextDuplicatesRemovalWorkflow(str(corpus), str(tmp_path / "bad.parquet"), str(tmp_path / "out"), **options).run(
        HERE
    )
    left = read_documents(tmp_path / "out")

    assert len(left) == 28
    assert all(("id" in document) != drop for document in left)


def test_places_of_another_input_are_refused(corpus, tmp_path):
    pq.write_table(pa.table({"id": ["elsewhere:3"]}), tmp_path / "ids.parquet")
    workflow = TextDuplicatesRemovalWorkflow(str(corpus), str(tmp_path / "ids.parquet"), str(tmp_path / "out"), **JSONL)
    with pytest.raises(ConfigError, match="expected places in"):
        workflow.run(HERE)
