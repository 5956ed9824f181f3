"""A crawl that is killed while it lists, downloads, extracts and writes: nothing is lost, doubled or fetched twice."""

import json
import os
from itertools import groupby

import pytest
from tests.crawl_server import crawl_server, html, index_rows
from tests.fault import crawl, sources
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

    paths = {path: parts / f".{path.replace('/', '-')}.part" for path in files}

    def have_come(quarters):
        return all(
            part.exists() and part.stat().st_size >= quarters * (sizes[path] // 4) for path, part in paths.items()
        )

    # While files are downloaded, each time a quarter further: the driver, a worker of the next, and then that driver.
    for path in files:
        server.faults[path] = [Fault("stall", at=sizes[path] // 4)] * 3
    story.start()
    story.wait(lambda: have_come(1), "a quarter")
    story.kill_driver()
    story.start()
    story.wait(lambda: have_come(2), "half")
    story.kill_worker_that_writes(paths[files[0]])
    story.wait(lambda: have_come(3), "three quarters, with another worker")
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


def test_chosen_records_whose_worker_and_driver_are_killed_are_fetched_again_one_batch_at_a_time(
    scene, server, tmp_path, monkeypatch
):
    """Records are not stored on the way, so what is under way is asked for again; what is done is not."""
    story = Story(scene, tmp_path / "killed", "tests.fault.sources", "records", server.url)
    rows = sorted(
        index_rows(server, "CC-MAIN-2025-21") + index_rows(server, "CC-MAIN-2025-18"), key=lambda r: r["warc_filename"]
    )
    (story.work / "rows").mkdir()
    for number, (_, group) in enumerate(groupby(rows, lambda row: row["warc_filename"])):
        lines = [json.dumps({**row, "text": row["url"]}) for row in group]
        (story.work / "rows" / f"{number}.jsonl").write_text("\n".join([*lines, ""]))
    first, stalled = sorted({row["warc_filename"] for row in rows})
    size = len(server.files[stalled])

    server.faults[stalled] = [Fault("stall", at=size // 2)] * 2
    story.start()
    story.wait(lambda: server.requests(stalled) and server.requests(stalled)[0].sent == size // 2, "half a batch")
    story.wait(lambda: list((story.work / "out").glob("*.jsonl")), "the batch of the first file")
    story.kill_workers_connected_to(server.port)
    story.wait(lambda: len(server.requests(stalled)) == 2, "another worker asks")
    story.kill_driver()
    story.start()
    finish(story.program, deadline_s=120)

    assert sum(seen.sent for seen in server.requests(first)) <= len(server.files[first])
    assert sum(seen.sent for seen in server.requests(stalled)) <= 2.05 * size
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "rows").symlink_to(story.work / "rows")
    monkeypatch.setenv(crawl.PLACE, str(plain))
    result = sources.build("records", server.url, plain).run(LocalExecutor(num_workers=0), quiet=True)
    assert (result.written, result.quarantined) == (2 * PAGES, 0)
    assert outputs(story.work) == outputs(plain)
    document = json.loads(outputs(plain)["0.jsonl"].splitlines()[0])
    assert document["binary_content"].encode() == html(int(document["url"].rpartition("/")[2]))
