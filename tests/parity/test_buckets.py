"""Buckets and copies are the same bytes on a machine and on a cluster; what the executors share is tested elsewhere."""

import pytest
from tests.jsonl_files import contents, write_documents
from tests.parity.executors import EXECUTORS

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.mixing import SampleByBucket
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.quality import BucketScores


def mixed(source, out, executor):
    sample = SampleByBucket({"high": 2.5, "low": 0.5, "unscored": 1})
    stages = [JsonlReader(str(source)), BucketScores("score"), sample, JsonlWriter(str(out))]
    return Pipeline("mixed", stages=stages).run(executor, quiet=True)


@pytest.mark.parametrize("make", EXECUTORS[:2])
def test_buckets_and_copies_do_not_depend_on_the_executor(make, tmp_path):
    for file in range(4):
        scores = [None if row % 50 == 0 else (file * 100 + row) * 61 % 401 for row in range(100)]
        documents = [{"id": f"{file}-{row}", "score": own} for row, own in enumerate(scores)]
        write_documents(tmp_path / "in" / f"{file}.jsonl", documents)
    alone = mixed(tmp_path / "in", tmp_path / "alone", LocalExecutor(num_workers=0))
    result = mixed(tmp_path / "in", tmp_path / "out", make())

    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    assert (result.read, result.written, result.created) == (alone.read, alone.written, alone.created)
    assert result.read + result.created == result.written + result.dropped_total
    assert result.created > 0 < result.dropped_total
