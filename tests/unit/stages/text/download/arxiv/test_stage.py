"""`ArxivDownloadExtractStage`: nothing is asked before somebody pays, then papers come with their books balanced."""

import json

import pytest
from tests.arxiv_archives import PAPER, PROOF, TEXT, manifest, project, single, tar_of

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import ArxivArchiveReader, ArxivDownloadExtractStage, TransferOptions
from gristmill.stages.text.download.arxiv.url_generation import parse_manifest
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.testing.file_server import MisbehavingFileServer

HERE = LocalExecutor(num_workers=0)
QUICK = TransferOptions(max_retries=1, timeout=5)
FIRST = tar_of({"0704/0704.0001.gz": project(main=PAPER, proof=PROOF), "0704/0704.0002.pdf": b"%PDF"})
SECOND = tar_of({"0705/0705.0001.gz": single(PAPER), "0705/0705.0002.gz": b"\x1f\x8bbroken"})
ARCHIVES = {"arXiv_src_0704_001.tar": FIRST, "arXiv_src_0705_001.tar": SECOND}


@pytest.fixture
def server(monkeypatch):
    files = {f"arxiv/src/{name}": content for name, content in ARCHIVES.items()}
    with MisbehavingFileServer(files | {"arxiv/src/arXiv_src_manifest.xml": manifest(ARCHIVES)}) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", found.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield found


def pipeline(work, **options):
    stage = ArxivDownloadExtractStage(str(work / "archives"), transfer=QUICK, **options)
    return Pipeline("arxiv", stages=[stage, JsonlWriter(str(work / "out"))])


def documents(work):
    files = sorted((work / "out").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (None, r"expected requester_pays=True.*All of it is several terabytes; each is 1,000.0 GB, \$90.00"),
        (4, r"\$0.09 a gigabyte.*nothing was fetched. url_limit=4 is about 2.0 GB, \$0.18"),
    ],
)
def test_nothing_is_asked_before_somebody_says_that_they_pay(server, tmp_path, limit, said):
    with pytest.raises(ConfigError, match=said):
        pipeline(tmp_path, url_limit=limit).run(HERE, quiet=True)
    assert server.requests() == []


def test_the_plan_says_what_it_costs_before_an_archive_is_fetched(server, tmp_path):
    plan = pipeline(tmp_path, requester_pays=True).plan(HERE)
    cost = f"{(len(FIRST) + len(SECOND)) / 1e9:.1f} GB, $0.00 outside of us-east-1"
    assert f"done while planning ({cost})" in plan.describe()
    assert [seen.path for seen in server.requests()] == ["arxiv/src/arXiv_src_manifest.xml"]
    assert server.log[0].headers["x-amz-request-payer"] == "requester"


@pytest.mark.slow
def test_papers_are_fetched_and_every_one_is_in_the_books(server, tmp_path):
    result = pipeline(tmp_path, requester_pays=True).run(HERE, quiet=True, max_quarantined=None)

    found = documents(tmp_path)
    assert [d["id"] for d in found] == ["0704.0001", "0705.0001"]
    assert (found[0]["text"], found[0]["file_name"]) == (TEXT, "arXiv_src_0704_001.tar")
    assert (result.read, result.written, result.quarantined) == (4, 2, 1)
    assert result.dropped == {"iterate_arxiviterator": {"no_source": 1}}
    asked = [seen for seen in server.requests() if seen.path.endswith(".tar")]
    assert all(seen.headers["x-amz-request-payer"] == "requester" for seen in asked)


@pytest.mark.slow
def test_limits_are_kept(server, tmp_path):
    pipeline(tmp_path, requester_pays=True, url_limit=1, record_limit=1).run(HERE, quiet=True)
    assert [d["id"] for d in documents(tmp_path)] == ["0704.0001"]


def test_a_manifest_is_read_with_sizes_and_checksums():
    first, second = parse_manifest(manifest(ARCHIVES))
    assert first.url == "s3://arxiv/src/arXiv_src_0704_001.tar"
    assert (first.size, first.version[:4], second.size) == (len(FIRST), "md5:", len(SECOND))
    with pytest.raises(ConfigError, match="expected the manifest in XML"):
        parse_manifest(b"<html>")


def test_an_empty_manifest_is_an_error(server, tmp_path):
    server.files["arxiv/src/arXiv_src_manifest.xml"] = manifest({})
    with pytest.raises(ConfigError, match=r"expected archives in s3://arxiv/src/arXiv_src_manifest\.xml; got none"):
        pipeline(tmp_path, requester_pays=True).plan(HERE)


@pytest.mark.parametrize("compat", [False, True])
def test_archives_that_are_there_are_read_in_parts(tmp_path, compat):
    members = {f"0704/0704.{k:04d}.gz": single(PAPER.replace("easy", f"easy {k}")) for k in range(30)}
    (tmp_path / "arXiv_src_0704_001.tar").write_bytes(tar_of(members))
    texts = []
    for blocksize in (None, 4000):
        reader = ArxivArchiveReader(str(tmp_path / "arXiv_src_0704_001.tar"), blocksize=blocksize, compat=compat)
        work = tmp_path / f"{blocksize}"
        result = Pipeline("arxiv", stages=[reader, JsonlWriter(str(work / "out"))]).run(HERE, quiet=True)
        assert (result.read, result.written) == (30, 30)
        texts.append([d["text"] for d in documents(work)])
    assert texts[0] == texts[1]
    assert set(documents(work)[0]) == (
        {"text", "file_name"} | ({"id", "source_id", "title", "abstract"} if not compat else set())
    )
