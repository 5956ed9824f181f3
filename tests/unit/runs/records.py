"""A plan and records of its partitions, for tests of the run directory."""

import pyarrow as pa

from gristmill.metrics.snapshot import StageCounts
from gristmill.pipeline.compile import compile_chain
from gristmill.runs.ledger import CommitRecord
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.tasks import DocumentBatch

TASKS = [DocumentBatch("b", pa.table({"text": ["a"]}))] * 3


def plan(min_words=5):
    return compile_chain("p", [ScoreFilter(WordCountFilter(min_words))], TASKS)


def record(root, *files, side_files=()):
    return CommitRecord(root, f"part-{root:05d}", files, side_files, (("word_count", StageCounts(read=root)),), ())
