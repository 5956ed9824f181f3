"""Archives made to do harm, in a run with workers: papers beside them are written, and no file appears elsewhere."""

import gzip
import json
import tarfile
from pathlib import Path

import pytest
from tests.arxiv_archives import PAPER, PROOF, project, single, special, tar_of

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download import ArxivArchiveReader
from gristmill.stages.text.io.writer import JsonlWriter

pytestmark = pytest.mark.slow
OUTSIDE = "/tmp/gristmill-must-not-be-written.tex"
LIMITS = IngestLimits(max_project_bytes=2 << 20, max_project_files=20, max_tar_member_bytes=1 << 20)
GOOD = project(main=PAPER, proof=PROOF)


def inside(kind, target):
    """A paper of which one file is a link or a device."""
    return tar_of([("main.tex", PAPER.encode()), special("x.tex", kind, target)], compress=True)


MEMBERS = [
    ("0704/0704.0001.gz", GOOD),
    ("0704/0704.0002.gz", tar_of({"../../up.tex": PAPER.encode(), OUTSIDE: b"x"}, compress=True)),
    ("0704/0704.0003.gz", inside(tarfile.SYMTYPE, "/etc/passwd")),
    ("0704/0704.0004.gz", inside(tarfile.LNKTYPE, "../../up.tex")),
    ("0704/0704.0005.gz", inside(tarfile.CHRTYPE, "")),
    ("0704/0704.0006.gz", gzip.compress(b"\\section{A}" + bytes(64 << 20))),
    ("0704/0704.0007.gz", tar_of({f"{k}.tex": b"x" for k in range(30)}, compress=True)),
    ("0704/0704.0008.gz", gzip.compress(gzip.compress(bytes(64 << 20)))),
    ("0704/0704.0009.gz", bytes(2 << 20)),
    special("0704/0704.0010.gz", tarfile.SYMTYPE, "/etc/passwd"),
    special("0704/0704.0011.gz", tarfile.LNKTYPE, "0704/0704.0001.gz"),
    special("0704/0704.0012.gz", tarfile.CHRTYPE),
    special("0704/0704.0013.gz", tarfile.BLKTYPE),
    special("0704/0704.0014.gz", tarfile.FIFOTYPE),
    ("../../0704.0015.gz", GOOD),
    ("/0704.0016.gz", GOOD),
    ("0704/0704.0017.gz", single(PAPER)),
    ("0704/0704.00\udcff18.gz", single(PAPER)),
]


def test_papers_beside_them_are_written_and_nothing_else(tmp_path, monkeypatch):
    work = tmp_path / "deep" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    (work / "arXiv_src_0704_001.tar").write_bytes(tar_of(MEMBERS))
    before = set(tmp_path.rglob("*"))
    stages = [ArxivArchiveReader("arXiv_src_0704_001.tar", limits=LIMITS), JsonlWriter("out")]
    result = Pipeline("hostile", stages=stages).run(LocalExecutor(num_workers=2), quiet=True, max_quarantined=None)

    found = [json.loads(line) for file in Path("out").glob("*.jsonl") for line in file.read_text().splitlines()]
    numbers = ("01", "02", "03", "04", "05", "15", "16", "17", r"\xff18")
    assert [document["id"] for document in found] == [f"0704.00{number}" for number in numbers]
    assert "root:" not in json.dumps(found)
    entries = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert {entry["document_id"][-2:]: entry["kind"] for entry in entries} == dict.fromkeys(
        ("06", "07", "09"), "too_large"
    )
    [dropped] = result.dropped.values()
    assert dropped == {"not_a_file": 5, "no_tex": 1}
    assert (result.read, result.written, result.quarantined) == (18, 9, 3)
    made = set(tmp_path.rglob("*")) - before
    assert all(path.is_relative_to(work / "out") for path in made)
    assert not Path(OUTSIDE).exists()
