"""A source partition is done when everything that came of it is, in whatever order that is heard."""

import itertools

import pytest

from gristmill.backends.delegated.envelope import Receipt
from gristmill.backends.delegated.root_books import RootBooks
from gristmill.metrics.snapshot import StageCounts
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import EmptyTask, StagedFile


class _Apart(ProcessingStage):
    fusible = False

    def process(self, task):
        return task


def plan():
    return Pipeline("p", stages=[_Apart(), _Apart().with_(name="b")]).plan(initial_tasks=[EmptyTask(), EmptyTask()])


def receipt(group, item_id, outputs=0, root=0, files=()):
    return Receipt(group, root, item_id, outputs, (StageCounts(read=1),), files, (), ())


FAMILY = [receipt(0, "r", outputs=2), receipt(1, "r.0"), receipt(1, "r.1")]


@pytest.mark.parametrize("order", list(itertools.permutations(FAMILY)))
def test_a_partition_is_done_at_its_last_receipt_and_not_before(order):
    books = RootBooks(plan())
    done = [books.add(each) for each in order]

    assert done[:-1] == [None, None]
    assert done[-1].record.root == 0
    assert [counts.read for _, counts in done[-1].record.counts] == [1, 2]


def test_a_partition_that_leads_to_nothing_is_done_at_once():
    assert RootBooks(plan()).add(receipt(0, "r")).record.name == "part-00000"


def test_partitions_do_not_mix():
    books = RootBooks(plan())
    books.add(FAMILY[0])

    assert books.add(receipt(0, "s", root=1)).record.root == 1
    assert books.queued(1) == 2


def test_files_are_in_the_order_of_their_names():
    books = RootBooks(plan())
    books.add(receipt(0, "r", outputs=1, files=(StagedFile("t2", "b", 1, 1, ""),)))
    done = books.add(receipt(1, "r", files=(StagedFile("t1", "a", 1, 1, ""),)))

    assert [file.final for file in done.record.files] == ["a", "b"]
