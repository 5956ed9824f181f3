"""`Pipeline` collects stages, describes them, and plans without doing anything."""

import pyarrow as pa
import pytest
from tests.jsonl_files import contents, write_documents

from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch


class _Explodes(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Must never be called by planning."""

    name = "explodes"

    def setup_on_node(self, node_info=None, worker_metadata=None):
        raise AssertionError("set up")

    setup = process = process_batch = setup_on_node


def test_add_stage_can_be_chained():
    first, second = ScoreFilter(WordCountFilter()), Score(len, "n")

    assert Pipeline("p").add_stage(first).add_stage(second).stages == [first, second]


def test_describe_says_what_each_stage_needs_reads_and_adds():
    pipeline = Pipeline("curate", "Keep what is long", [JsonlReader("in/"), Score(len, "chars")])

    assert pipeline.describe().splitlines() == [
        "Pipeline: curate",
        "Description: Keep what is long",
        "1. jsonl_reader (JsonlReader)",
        "     file_partitioning",
        "     jsonl_reader",
        "2. score_len (Score)",
        "     needs 1 cpu, 0 gpu",
        "     reads text",
        "     adds chars",
    ]


def test_planning_starts_nothing_and_changes_nothing(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "a"}])
    write_documents(tmp_path / "out" / "old.jsonl", [{"text": "old"}])
    pipeline = Pipeline("p", stages=[JsonlReader(str(tmp_path / "in")), _Explodes()])
    pipeline.add_stage(JsonlWriter(str(tmp_path / "out"), mode="overwrite"))
    files, stages = contents(tmp_path), [dict(vars(stage)) for stage in pipeline.stages]
    first, second = pipeline.plan(), pipeline.plan()

    assert second.describe() == first.describe()
    assert contents(tmp_path) == files
    assert not (tmp_path / "out" / ".gristmill").exists()
    assert [dict(vars(stage)) for stage in pipeline.stages] == stages


def test_a_plan_is_described_for_a_person(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "a"}])
    pipeline = Pipeline("p", stages=[JsonlReader(str(tmp_path / "in")), JsonlWriter(str(tmp_path / "out"))])
    plan = pipeline.plan()

    assert plan.describe().splitlines() == [
        "pipeline p",
        "  input: 1 source partition of 1 file, 14 bytes",
        "  file_partitioning: done while planning",
        "  group 0: 2 stages fused, 1 cpu a worker",
        "    jsonl_reader",
        "    jsonl_writer",
        f"  output: {tmp_path / 'out'}",
        f"  fingerprint: {plan.fingerprint}",
    ]


@pytest.mark.parametrize("limit", [-1, 1.5, 0.0, "10%"])
def test_an_impossible_quarantine_limit_is_an_error(limit):
    pipeline = Pipeline("p", stages=[Score(len, "n")])

    with pytest.raises(ConfigError, match=r"^max_quarantined: expected a number of documents ≥ 0 or a share in"):
        pipeline.run(initial_tasks=[DocumentBatch("b", pa.table({"text": ["a"]}))], max_quarantined=limit)
