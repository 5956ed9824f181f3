"""pdfium in a child: what hangs is ended, what crashes is tried again, and no child outlives whoever asked."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.fault.processes import wait_until
from tests.pdf_files import of_text, pdf, that_hangs, that_unpacks_to, with_password

from gristmill.errors import MachineFailed
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.base import Dropped
from gristmill.stages.text.pdf import pdf_process
from gristmill.stages.text.pdf.extract_pdf import extract_pdf
from gristmill.stages.text.pdf.pdf_process import PdfProcess

pytestmark = pytest.mark.slow
LIMITS = IngestLimits()


@pytest.fixture(scope="module")
def shared():
    process = PdfProcess()
    yield process
    process.close()


@pytest.mark.parametrize(
    "content",
    [
        of_text("One.", "Two."), b"not one", b"%PDF-1.4 rubbish %%EOF", b"%PDF-1.4 cut", pdf(b""), with_password(),
        pdf(*[b""] * 2001),
    ],
    ids=["text", "not one", "broken", "cut", "empty", "locked", "long"],
)  # fmt: skip
def test_it_finds_what_is_found_without_a_child(shared, content):
    assert shared.read(content, LIMITS) == extract_pdf(content, LIMITS)


def test_a_file_with_a_password_and_one_of_10_000_pages_are_dropped_by_name(shared):
    assert shared.read(with_password(), LIMITS) == Dropped("encrypted")
    assert shared.read(pdf(*[b""] * 10_000), LIMITS) == Dropped("too_large", 10_000, "≤ 2000 pages")


def test_options_go_along(shared):
    with pytest.raises(TypeError):
        shared.read(b"%PDF", LIMITS, 1)
    garbled = pdf(b"BT /F1 10 Tf 50 700 Td (AAB) Tj ET", unicode_map="e000")
    assert shared.read(garbled, LIMITS).reason == "needs_ocr"
    assert shared.read(garbled, LIMITS, max_garbled_share=1.0).num_pages == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("file_s", "page_s"), [(1, 3600), (3600, 1)], ids=["of the file", "of a page"])
def test_what_hangs_is_ended_by_either_limit_and_the_pages_before_are_kept(shared, file_s, page_s):
    begun = time.monotonic()
    found = shared.read(that_hangs(), IngestLimits(pdf_s=file_s, pdf_page_s=page_s))
    assert (found.kind, found.document) == ("time_limit", "The first page.")
    assert f"expected a PDF within {file_s} s, and each page within {page_s} s; page 2 was not read" in found.error
    assert time.monotonic() - begun < 40  # the file alone would take years
    assert shared.read(of_text("Next."), LIMITS).text == "Next."


@pytest.mark.timeout(60)
def test_a_second_try_has_the_time_that_the_first_has_left(shared, monkeypatch):
    """A file that ends its process after some time does not get all of it again."""
    tries = []

    def die(child, ask, content, limits, left_s):
        tries.append(left_s)
        child.end()
        return pdf_process._Died("SIGSEGV", 0, "", 40.0)

    monkeypatch.setattr(pdf_process._Child, "read", die)
    assert PdfProcess().read(of_text("x"), IngestLimits(pdf_s=60)).kind == "crashed"
    assert tries == [60, 20]


def test_what_needs_too_much_memory_crashes_its_child_and_nothing_else(shared):
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory is limited on Linux")
    found = shared.read(that_unpacks_to(200 << 20), IngestLimits(max_pdf_memory=100 << 20))
    assert isinstance(found, Quarantined)
    assert found.kind == "crashed"
    assert "pdfium ended with SIG" in found.error
    assert shared.read(of_text("Next."), LIMITS).text == "Next."


def test_a_child_that_somebody_kills_is_replaced_without_a_word(shared):
    assert shared.read(of_text("One."), LIMITS).text == "One."
    os.kill(shared._child._process.pid, signal.SIGKILL)
    assert shared.read(of_text("Two."), LIMITS).text == "Two."


def test_a_child_that_cannot_start_is_a_fault_of_the_machine(monkeypatch):
    monkeypatch.setattr(pdf_process, "_CODE", "raise SystemExit(3)")
    with pytest.raises(MachineFailed, match="ended with exit code 3 before it began"):
        PdfProcess().read(of_text("x"), LIMITS)


def test_copies_have_children_of_their_own(shared):
    shared.read(of_text("One."), LIMITS)
    assert copy.copy(shared)._child is None
    assert pickle.loads(pickle.dumps(shared))._child is None


PROGRAM = """
import sys
from tests.pdf_files import that_hangs
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.pdf.pdf_process import PdfProcess
PdfProcess().read(that_hangs(), IngestLimits(pdf_s=3600, pdf_page_s=3600))
"""


@pytest.mark.fault
@pytest.mark.timeout(120)
def test_a_child_in_a_file_that_hangs_ends_with_whoever_asked():
    with subprocess.Popen([sys.executable, "-c", PROGRAM]) as program:
        own = psutil.Process(program.pid)

        def hanging():
            return [child for child in own.children() if child.cpu_times().user > 1.5]

        [child] = wait_until(hanging, what="a child is busy", program=program, deadline_s=100)
        program.kill()
    wait_until(lambda: not child.is_running(), what="the child ends", deadline_s=60)
