"""PDFs that crash, hang, or have no text, beside good ones: every file is in the books, on every executor."""

import json
from pathlib import Path

import pytest
from tests.pdf_files import HEIGHT, WIDTH, of_text, pdf, picture, that_hangs, that_unpacks_to, with_password

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.pdf import PdfReader

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
LIMITS = IngestLimits(pdf_s=5, pdf_page_s=5, max_pdf_memory=64 << 20, max_pdf_pages=50)
GOOD = ("a-good.pdf", "m-good.pdf", "z-good.pdf")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("files")
    made = {
        "b-hangs.pdf": that_hangs(),
        "c-crashes.pdf": that_unpacks_to(100 << 20),
        "d-damaged.pdf": b"%PDF-1.4 rubbish %%EOF",
        "e-cut.pdf": of_text("Cut.")[:200],
        "f-empty.pdf": b"",
        "g-blank.pdf": pdf(b""),
        "h-locked.pdf": with_password(),
        "i-long.pdf": pdf(*[b""] * 51),
        "j-scanned.pdf": pdf(picture(0, 0, WIDTH, HEIGHT)),
        **{name: of_text(f"The text of {name}.") for name in GOOD},
    }
    for name, content in made.items():
        (directory / name).write_bytes(content)
    return directory


def check(executor, files, work):
    stages = [PdfReader(str(files), limits=LIMITS), JsonlWriter(str(work / "out"))]
    rejects = str(work / "rejects")
    result = Pipeline("pdf", stages=stages).run(executor, quiet=True, max_quarantined=None, rejects_path=rejects)

    found = [json.loads(line) for file in (work / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
    assert {document["id"]: document["text"] for document in found} == {name: f"The text of {name}." for name in GOOD}
    [dropped] = result.dropped.values()
    assert dropped == {"truncated": 1, "not_pdf": 1, "empty": 1, "encrypted": 1, "too_large": 1, "needs_ocr": 1}
    assert (result.read, result.written, result.quarantined) == (12, 3, 3)
    entries = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert {entry["document_id"]: entry["kind"] for entry in entries} == {
        "b-hangs.pdf": "time_limit", "c-crashes.pdf": "crashed", "d-damaged.pdf": "broken_pdf",
    }  # fmt: skip
    assert all(entry["source"].endswith(f"/{entry['document_id']}") for entry in entries)


@pytest.mark.parametrize("workers", [0, 2])
def test_here_and_in_workers(files, tmp_path, workers):
    check(LocalExecutor(num_workers=workers), files, tmp_path)


@pytest.mark.cluster
@pytest.mark.xdist_group("ray")
@pytest.mark.usefixtures("ray_cluster")
def test_in_actors_of_ray(files, tmp_path):
    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

    check(RayActorPoolExecutor(), files, tmp_path)
