"""The same pipeline gives the same bytes and the same account on every executor."""

import pytest
from tests.jsonl_files import contents, write_documents
from tests.parity.executors import EXECUTORS, local

from gristmill.backends.local import LocalExecutor
from gristmill.cli.run_files import find_runs
from gristmill.dashboard.run_data import read_run
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication import ExactDeduplication, FuzzyDeduplication
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.text.filters import Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import NonAlphaNumericFilter, WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.modifiers import Modify
from gristmill.stages.text.modifiers.string import NewlineNormalizer
from gristmill.tasks import DocumentBatch
from gristmill.testing.contracts.executor import counts_of

pytestmark = pytest.mark.slow

FILES, ROWS = 2, 60


class Splits(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Several tasks of one, in workers of its own."""

    name = "splits"
    fusible = False

    def process(self, task):
        return [task.slice(start, 7) for start in range(0, task.num_items, 7)]


class FailsOnSome(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "fails_on_some"

    def setup(self, worker_metadata=None):
        self._bad = {13, 57}

    def process(self, task):
        found = sorted(self._bad.intersection(task.column("n").to_pylist()))
        if found:
            raise ValueError(f"cannot do {found}")
        return task


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    directory = tmp_path_factory.mktemp("parity") / "in"
    for file in range(FILES):
        rows = [ROWS * file + row for row in range(ROWS)]
        # Every seventh text is that of the document seven before it, every fifth nearly that of the one before.
        words = [f"stone mill river {n - n % 7} grain sack {n // 5} " * 9 for n in rows]
        write_documents(
            directory / f"{file}.jsonl",
            [{"id": f"d{n}", "n": n, "text": word * (n % 4) + "\r\n"} for n, word in zip(rows, words, strict=True)],
        )
    return directory


def text(corpus, out, executor):
    stages = [
        JsonlReader(str(corpus), blocksize="16KB"),
        Modify(NewlineNormalizer()),
        ScoreFilter(WordCountFilter(min_words=20), score_field="words"),
        ScoreFilter(NonAlphaNumericFilter(0.4)),
        JsonlWriter(str(out / "clean")),
    ]
    return counts_of(
        Pipeline("text", stages=stages).run(executor, checkpoint_path=out / ".gristmill", rejects_path=out / "rejects")
    )


def custom(corpus, out, executor):
    stages = [
        JsonlReader(str(corpus)),
        Splits(),
        FailsOnSome(),
        Score(len, "chars"),
        JsonlWriter(str(out / "clean")),
    ]
    return counts_of(Pipeline("custom", stages=stages).run(executor, checkpoint_path=out / ".gristmill"))


def told_about(out):
    """What the reports of the runs in a directory tell about documents."""
    return [(run.name, run.state, run.documents) for run in map(read_run, find_runs(str(out), who="report"))]


def account_of(result):
    """What a workflow says it found, and the books of its last run."""
    numbers = {name: value for name, value in result.metadata.items() if not name.endswith(("_time", "_path"))}
    assert numbers["num_duplicates"]
    return numbers, counts_of(result.pipeline_tasks["removal"])


def exact(corpus, out, executor):
    workflow = ExactDeduplicationWorkflow(str(out), str(corpus), "jsonl", id_field="id", perform_removal=True)
    return account_of(workflow.run(executor=executor))


def both(corpus, out, executor):
    """Exact and fuzzy deduplication as stages, behind one that cuts batches and one that fails on documents."""
    stages = [
        JsonlReader(str(corpus)),
        Splits(),
        ExactDeduplication(id_field="id"),
        FailsOnSome(),
        FuzzyDeduplication(id_field="id"),
        JsonlWriter(str(out)),
    ]
    result = Pipeline("both", stages=stages).run(executor, rejects_path=out / "rejects")
    assert [own["num_duplicates"] > 0 for own in result.found.values()] == [True, True]
    return counts_of(result)


@pytest.fixture(scope="module")
def expected(corpus, tmp_path_factory):
    """What one process gives, made when it is first asked for."""
    made = {}

    def look(pipeline):
        if pipeline not in made:
            out = tmp_path_factory.mktemp(pipeline.__name__)
            made[pipeline] = (pipeline(corpus, out, LocalExecutor(num_workers=0)), contents(out), told_about(out))
        return made[pipeline]

    return look


@pytest.fixture(scope="module", params=EXECUTORS)
def executor(request):
    """One for all pipelines, kept ready between them."""
    if request.param is not local:
        request.getfixturevalue("ray_cluster")
    with request.param().kept_ready() as ready:
        yield ready


@pytest.mark.parametrize("pipeline", [text, custom, exact, both])
def test_bytes_and_books_are_those_of_one_process(executor, pipeline, corpus, expected, tmp_path):
    account, files, told = expected(pipeline)

    assert account
    assert pipeline(corpus, tmp_path, executor) == account
    assert contents(tmp_path) == files
    assert told_about(tmp_path) == told
