"""A crawl that is killed while it lists, downloads, extracts and writes: nothing is lost, doubled or fetched twice."""

import os

import pytest
from tests.crawl_server import crawl_server
from tests.fault import crawl
from tests.fault.processes import Scene, finish
from tests.fault.story import Story

from gristmill.backends.local import LocalExecutor
from gristmill.testing.file_server import Fault

pytestmark = [pytest.mark.fault, pytest.mark.slow]
PAGES = 150


@pytest.fixture
def scene(tmp_path):
    scene = Scene(tmp_path)
    yield scene
    scene.close()


@pytest.fixture
def server():
    with crawl_server(1, PAGES) as server:
        yield server


def outputs(work):
    return {path.name: path.read_bytes() for path in sorted((work / "out").glob("*.jsonl"))}


@pytest.mark.parametrize("options", [(), ("--quick",)], ids=["three processes", "one process"])
def test_kills_in_every_phase_change_no_byte_and_fetch_nothing_twice(scene, server, tmp_path, options):
    files = sorted(path for path in server.files if "/warc/" in path and "MAIN" in path)
    sizes = {path: len(server.files[path]) for path in files}
    story = Story(scene, tmp_path / "killed", "tests.fault.crawl", *options, server.url)
    parts = story.work / "downloads"

    server.faults["collinfo.json"] = [Fault("stall")]
    story.start()
    story.wait(lambda: server.requests("collinfo.json"), "it lists")
    story.kill_driver()

    for share in (4, 3, 2):  # three kills while files are downloaded, each a quarter further
        for path in files:
            server.faults[path] = [Fault("stall", at=sizes[path] // 4)]
        story.start()
        done = {path: sizes[path] * (5 - share) // 4 - 100 for path in files}

        def have_come(done=done):
            found = {path.name: path.stat().st_size for path in parts.glob(".*.part")} if parts.exists() else {}
            names = {path: f".{path.replace('/', '-')}.part" for path in files}
            return all(found.get(names[path], 0) >= done[path] // 2 for path in files)

        story.wait(have_come, "files arrive")
        story.kill_driver()
    server.faults.clear()

    story.kill_in(("extract", "write"))
    story.start()
    finish(story.program, deadline_s=200)

    sent = sum(seen.sent for path in files for seen in server.requests(path))
    assert sent <= 1.05 * sum(sizes.values())
    plain = tmp_path / "plain"
    plain.mkdir()
    os.environ[crawl.PLACE] = str(plain)
    try:
        result = crawl.build(server.url, plain).run(LocalExecutor(num_workers=0), quiet=True)
    finally:
        del os.environ[crawl.PLACE]
    assert result.written == 2 * PAGES
    assert outputs(story.work) == outputs(plain)
    assert not list(parts.glob(".*.part"))
    assert not list(parts.glob(".*.lock"))
