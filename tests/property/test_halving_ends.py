"""Taking a failed batch apart ends, within a bound, and loses no document, however a stage fails (I14, I15)."""

import math
import zlib

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.engine.commands import Care
from gristmill.pipeline.compile import compile_chain
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.job import Job


def batch(size):
    return DocumentBatch("numbers", pa.table({"n": pa.array(range(size), pa.int64())}))


class Failing(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Raises as a function of the documents in the call says."""

    name = "failing"

    def __init__(self, fails):
        self.fails = fails
        self.calls = 0

    def process(self, task):
        self.calls += 1
        if self.fails(task.to_pyarrow()["n"].to_pylist()):
            raise ValueError("no")
        return task


def take_apart(stage, size):
    """Run one batch as after its first failure; return (documents that came out, documents quarantined)."""
    (group,) = compile_chain("test", [stage], [batch(1)]).groups
    (result,) = GroupRunner(group, last=True).run([Job("t", batch(size), Care.ISOLATE)], lambda *_: None)
    return sum(task.num_items for _, task in result.outputs), sum(counts.quarantined for counts in result.counts)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(size=st.integers(1, 64), bad=st.sets(st.integers(0, 63), max_size=12))
def test_k_bad_documents_cost_k_times_twice_the_depth(size, bad):
    bad = {row for row in bad if row < size}
    stage = Failing(lambda rows: any(row in bad for row in rows))
    out, quarantined = take_apart(stage, size)

    assert (out, quarantined) == (size - len(bad), len(bad))
    # As a whole, the halves at every level above each bad one, and the good ones. The first failure was before.
    assert stage.calls <= 2 + len(bad) * (2 * math.ceil(math.log2(size)) + 2 if size > 1 else 2)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(size=st.integers(1, 40), seed=st.integers(0, 10**6), share=st.integers(0, 100))
def test_a_stage_that_fails_for_no_reason_is_given_up_on_and_every_document_is_accounted_for(size, seed, share):
    stage = Failing(lambda rows: zlib.crc32(f"{seed}/{rows}".encode()) % 100 < share)
    out, quarantined = take_apart(stage, size)

    assert out + quarantined == size
    assert stage.calls <= 2 * size * (size + 1)  # each round finds a bad one or is the last
