"""Wikipedia and arXiv, killed while they list, download, extract and write: no byte of the output is another one."""

import pytest
from tests.arxiv_archives import PAPER, manifest, single, tar_of
from tests.fault import crawl, sources
from tests.fault.processes import Scene, finish
from tests.fault.story import Story
from tests.wiki_dumps import dump_server_files, page, streams

from gristmill.backends.local import LocalExecutor
from gristmill.testing.file_server import Fault, MisbehavingFileServer

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(400)]
DOCUMENTS = 120


def dump():
    words = [f"{k * 7919:x}" for k in range(5000)]  # so that it does not pack to nothing
    pages = [page(k, " ".join(words[k * 40 : k * 40 + 200])) for k in range(DOCUMENTS)]
    return b"".join(streams(pages, pages_per_stream=5))


def archive():
    return tar_of({f"0704/0704.{k:04d}.gz": single(PAPER.replace("easy", f"{k}")) for k in range(DOCUMENTS)})


def wikipedia_files():
    files = dump_server_files(dumps={"20240201": {"enwiki-20240201-multistream.xml.bz2": dump()}})
    return files, "enwiki/", "enwiki/20240201/enwiki-20240201-multistream.xml.bz2"


def arxiv_files():
    archives = {"arXiv_src_0704_001.tar": archive()}
    path = "arxiv/src/arXiv_src_0704_001.tar"
    listed = "arxiv/src/arXiv_src_manifest.xml"
    return {path: archives["arXiv_src_0704_001.tar"], listed: manifest(archives)}, listed, path


@pytest.fixture
def scene(tmp_path):
    scene = Scene(tmp_path)
    yield scene
    scene.close()


@pytest.fixture
def keys(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", crawl.PLACE):
        monkeypatch.setenv(name, "")  # the program sets them here too, and they go with the test
    return monkeypatch


def outputs(work):
    return {path.name: path.read_bytes() for path in sorted((work / "out").glob("*.jsonl"))}


@pytest.mark.parametrize(("source", "files"), [("wikipedia", wikipedia_files), ("arxiv", arxiv_files)])
def test_kills_in_every_phase_change_no_byte_and_fetch_nothing_twice(scene, keys, tmp_path, source, files):
    content, listing, path = files()
    size = len(content[path])
    with MisbehavingFileServer(content) as server:
        story = Story(scene, tmp_path / "killed", "tests.fault.sources", source, server.url)
        parts = story.work / "downloads"

        server.faults[listing] = [Fault("stall")]
        story.start()
        story.wait(lambda: server.requests(listing), "it lists")
        story.kill_driver()

        def has_come(quarters):
            return [part for part in parts.glob(".*.part") if part.stat().st_size >= quarters * (size // 4)]

        # While the file is downloaded, each time a quarter further: a worker of a driver that goes on, and the driver.
        server.faults[path] = [Fault("stall", at=size // 4)] * 2
        story.start()
        [part] = story.wait(lambda: has_come(1), "a quarter")
        story.kill_worker_that_writes(part)
        story.wait(lambda: has_come(2), "half, with another worker")
        story.kill_driver()
        server.faults.clear()

        story.kill_in(("extract", "write"))
        story.start()
        finish(story.program, deadline_s=200)

        plain = tmp_path / "plain"
        plain.mkdir()
        keys.setenv(crawl.PLACE, str(plain))
        result = sources.build(source, server.url, plain).run(LocalExecutor(num_workers=0), quiet=True)

    assert result.written == DOCUMENTS
    assert outputs(story.work) == outputs(plain)
    assert not list(parts.glob(".*.part"))
    assert not list(parts.glob(".*.lock"))
    assert sum(seen.sent for seen in server.requests(path)) <= 2.05 * size  # the plain run has fetched it as well
