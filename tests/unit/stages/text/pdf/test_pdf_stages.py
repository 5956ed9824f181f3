"""`PdfReader` and `PdfExtractStage`: PDFs to documents, every one in the books."""

import gzip
import json

import pyarrow as pa
import pytest
from tests.pdf_files import HEIGHT, WIDTH, lines_at, of_text, pdf, picture

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MissingDependency, StageError
from gristmill.pipeline import Pipeline
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.pdf import PdfExtractStage, PdfReader
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)
GOOD = of_text("The text of a file.")
FILES = {
    "a.pdf": GOOD,
    "b.pdf": pdf(picture(0, 0, WIDTH, HEIGHT)),
    "c.pdf": b"%PDF-1.4 rubbish %%EOF",
    "d.PDF": of_text("Another file."),
    "e.pdf": b"not a PDF",
    "f.pdf": GOOD[:200],
    "g.pdf": pdf(b""),
    "notes.txt": b"not listed",
}


def run(stage, work, **options):
    pipeline = Pipeline("pdf", stages=[stage, JsonlWriter(str(work / "out"))])
    result = pipeline.run(HERE, quiet=True, max_quarantined=None, **options)
    files = sorted((work / "out").glob("*.jsonl"))
    return result, [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def source(tmp_path):
    directory = tmp_path / "files"
    directory.mkdir()
    for name, content in FILES.items():
        (directory / name).write_bytes(content)
    return str(directory)


@pytest.mark.slow
def test_files_become_documents_and_others_have_a_reason(source, tmp_path):
    result, found = run(PdfReader(source), tmp_path)

    about = {"num_pages": 1, "scanned_share": 0.0, "text_garbled_share": 0.0}
    assert found == [
        {"text": "The text of a file.", **about, "id": "a.pdf", "file_name": "a.pdf"},
        {"text": "Another file.", **about, "id": "d.PDF", "file_name": "d.PDF"},
    ]
    assert result.dropped == {"extract_pdfextractor": {"needs_ocr": 1, "not_pdf": 1, "truncated": 1, "empty": 1}}
    assert (result.read, result.written, result.quarantined) == (7, 2, 1)


@pytest.mark.slow
def test_compressed_files_are_read_and_large_ones_left_out(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.pdf.gz").write_bytes(gzip.compress(GOOD))
    (tmp_path / "in" / "b.pdf").write_bytes(GOOD + bytes(5000))
    reader = PdfReader(str(tmp_path / "in"), limits=IngestLimits(max_pdf_bytes=len(GOOD) + 10))
    result, found = run(reader, tmp_path)
    assert [d["id"] for d in found] == ["a.pdf.gz"]
    assert result.dropped == {"iterate_pdfiterator": {"too_large": 1}}


def batch(contents, **columns):
    table = pa.table(
        {"url": [f"u{k}" for k in range(len(contents))], "binary_content": pa.array(contents, pa.binary()), **columns}
    )
    return DocumentBatch("crawl", table)


@pytest.mark.slow  # pdfium has a process of its own
def test_a_column_of_pdfs_becomes_a_column_of_text():
    stage = PdfExtractStage()
    made = stage.process(batch([GOOD, b"x", None, of_text("Two."), b"%PDF rubbish %%EOF"]))

    assert made.get_columns() == ["url", "text", "num_pages", "scanned_share", "text_garbled_share"]
    assert made.column("url").to_pylist() == ["u0", "u3"]
    assert made.column("text").to_pylist() == ["The text of a file.", "Two."]
    assert stage.context.dropped == {"not_pdf": 2}
    [record] = stage.context.quarantined
    assert (record.kind, record.row, bytes(record.payload), record.extension) == (
        "broken_pdf", 4, b"%PDF rubbish %%EOF", ".pdf",
    )  # fmt: skip


@pytest.mark.slow  # pdfium has a process of its own
def test_what_a_crawler_has_cut_off_is_dropped_if_a_column_says_so():
    stage = PdfExtractStage(truncated_column="truncated")
    made = stage.process(batch([GOOD, GOOD], truncated=["length", ""]))
    assert made.column("url").to_pylist() == ["u1"]
    assert stage.context.dropped == {"truncated": 1}


def test_an_empty_batch_has_the_columns_too():
    made = PdfExtractStage().process(batch([]))
    assert made.get_columns() == ["url", "text", "num_pages", "scanned_share", "text_garbled_share"]


@pytest.mark.slow  # pdfium has a process of its own
def test_rejects_have_what_was_measured():
    stage = PdfExtractStage()
    stage.context.keep_rejects = True
    stage.process(
        batch([pdf(picture(0, 0, WIDTH, HEIGHT), lines_at(50, 700, ["x" * 30]), picture(0, 0, WIDTH, HEIGHT))])
    )
    [rejected] = stage.context.rejects
    assert (rejected.reason, rejected.values, rejected.threshold) == ("needs_ocr", (0.6667,), "scanned_share ≤ 0.5")


def test_a_column_that_is_not_bytes_is_a_mistake():
    with pytest.raises(StageError, match="expected bytes in column 'url'; got str"):
        PdfExtractStage("url").process(batch([GOOD]))


@pytest.mark.parametrize("share", [-0.1, 1.5, "much"])
def test_a_share_that_is_none_is_said_at_once(share):
    for made in (lambda: PdfReader("x", max_scanned_share=share), lambda: PdfExtractStage(max_garbled_share=share)):
        with pytest.raises(ConfigError, match=r"expected max_\w+_share from 0 to 1; got"):
            made()


def test_a_missing_package_is_said_before_the_run(source, tmp_path, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "pypdfium2" else real(name, *rest)
    )
    with pytest.raises(MissingDependency, match=r"pip install 'gristmill\[pdf\]'"):
        run(PdfReader(source), tmp_path)
