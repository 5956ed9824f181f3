"""Raw sources give the same bytes for any number of workers, and after workers and drivers were killed."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from tests.fault.hold import held, hold_until
from tests.fault.ingest import KINDS, PARTITIONS, make_source, run
from tests.fault.processes import finish, wait_until
from tests.fault.test_kill_anything import assert_nothing_is_left, descendants
from tests.fault.traces import contents, ledger, shared_memory
from tests.pdf_files import of_text

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import CompositeStage
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.stages.text.download.base import DocumentIterateExtractStage
from gristmill.stages.text.io import JsonlWriter
from gristmill.stages.text.pdf.pdf_extractor import PdfExtractor
from gristmill.stages.text.pdf.pdf_reader import PdfIterator

pytestmark = [pytest.mark.fault, pytest.mark.slow]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sources")
    return {kind: make_source(kind, directory / kind) for kind in KINDS}


@pytest.fixture(scope="module")
def undisturbed(sources, tmp_path_factory):
    """Of each source, what one worker makes of it."""
    found = {}
    for kind in KINDS:
        work = tmp_path_factory.mktemp(kind)
        result = run(kind, sources[kind], work, workers=1)
        assert result.read == result.written + result.dropped_total + result.quarantined
        assert result.quarantined >= 1
        assert result.dropped_total >= 1
        assert len(ledger(work)) >= PARTITIONS
        found[kind] = contents(work)
    return found


@pytest.mark.parametrize(("kind", "workers"), [*((kind, 4) for kind in KINDS), ("pdf", 2)])
def test_the_output_is_the_same_for_any_number_of_workers(sources, undisturbed, tmp_path, kind, workers):
    """For four as for one. Two are killed below; those that read PDFs have children, so two of them also are not."""
    run(kind, sources[kind], tmp_path, workers=workers)
    assert contents(tmp_path) == undisturbed[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_kills_of_every_worker_and_then_of_the_driver_change_nothing(scene, sources, undisturbed, kind):
    """The driver goes on after its workers were killed, and is killed itself three partitions later."""
    shared_before = shared_memory()
    path, limit = scene.work / "run" / "ledger.jsonl", scene.work / "limit"
    hold_until(limit, 3)
    program = scene.start("-m", "tests.fault.ingest", kind, sources[kind], scene.work, hold=(limit, path))

    def has_come(lines):
        return path.exists() and path.read_bytes().count(b"\n") >= lines

    wait_until(lambda: has_come(3) and held(path), what="three partitions", program=program)
    for worker in wait_until(lambda: descendants(program)[1], what="workers", program=program):
        worker.send_signal(signal.SIGKILL)
    hold_until(limit, 6)
    assert wait_until(lambda: has_come(6), what="six partitions", program=program), program.communicate()
    program.kill()
    program.communicate()
    finish(scene.start("-m", "tests.fault.ingest", kind, sources[kind], scene.work))

    assert contents(scene.work) == undisturbed[kind]
    assert_nothing_is_left(scene, shared_before)


class HostilePdfs(PdfExtractor):
    """Does what pdfium has done to others: ends the process, or never comes back."""

    batch_deadline_s = 2.0

    def extract(self, record):
        if record["id"].startswith("crash"):
            os.abort()
        if record["id"].startswith("hang"):
            threading.Event().wait()
        return super().extract(record)


class Hostile(CompositeStage):
    def __init__(self, source):
        self.source = str(source)

    def decompose(self):
        listing = FilePartitioningStage(self.source, blocksize=1 << 20, file_extensions=[".pdf"])
        return [listing, *DocumentIterateExtractStage(PdfIterator(), HostilePdfs()).decompose()]


def test_pdfs_that_crash_or_hang_cost_themselves_and_nothing_else(tmp_path):
    source = tmp_path / "files"
    source.mkdir()
    names = [*(f"{k}.pdf" for k in range(20)), "crash.pdf", "hang.pdf"]
    for name in names:
        (source / name).write_bytes(of_text(f"The text of {name}."))

    stages = [Hostile(source), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("pdf", stages=stages).run(LocalExecutor(num_workers=2), quiet=True, max_quarantined=None)

    files = sorted((tmp_path / "out").glob("*.jsonl"))
    found = [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]
    assert sorted(found) == sorted(f"{k}.pdf" for k in range(20))
    entries = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert sorted(entry["document_id"] for entry in entries) == ["crash.pdf", "hang.pdf"]
    assert (result.read, result.written, result.quarantined) == (22, 20, 2)
