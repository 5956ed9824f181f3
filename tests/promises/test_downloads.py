"""What is fetched in a run: listed once, whole or on record, removed when it is committed and not before."""

import json
import os
import threading
from pathlib import Path

import pytest
from tests.crawl_server import crawl_server
from tests.own_source import LinesOf, Shouts

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.download import (
    CommonCrawlDownloadExtractStage,
    DocumentDownloadExtractStage,
    URLGenerator,
)
from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader
from gristmill.stages.text.download.html_extractors import ResiliparseExtractor
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.storage.disk_budget import DiskBudget
from gristmill.storage.download_notes import Note
from gristmill.storage.transfer import RemoteFile, TransferOptions
from gristmill.testing.file_server import Fault, MisbehavingFileServer

HERE = LocalExecutor(num_workers=0)
FILES, LINES = 6, 100
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_downloads")]


@pytest.fixture
def server():
    files = {
        f"data/part-{f}.txt": "".join(f"{f}-{n} text of {f} and {n}\n" for n in range(LINES)).encode()
        for f in range(FILES)
    }
    with MisbehavingFileServer(files) as server:
        yield server


class Listed(URLGenerator):
    """Lists what the server is known to have."""

    def __init__(self, prefix, number=FILES):
        self.prefix = prefix
        self.number = number

    def generate_urls(self):
        return [f"{self.prefix}/data/part-{f}.txt" for f in range(self.number)]


class Waits(ProcessingStage):
    """Lets batches pass once there is a file `gate`."""

    name = "waits"

    def __init__(self, gate):
        self.gate = str(gate)

    def process(self, task):
        while not Path(self.gate).exists():
            threading.Event().wait(0.01)
        return task


def source(server, work, *, generator=None, **options):
    downloader = TransferDownloader(str(work / "d"), transfer=TransferOptions(**{"max_retries": 2, **options}))
    return DocumentDownloadExtractStage(generator or Listed(server.url), downloader, LinesOf(), Shouts())


def run(stages, work, executor=HERE, **options):
    pipeline = Pipeline("p", stages=[*stages, JsonlWriter(str(work / "out"))])
    return pipeline.run(executor, quiet=True, **{"max_quarantined": None, **options})


def ids(work):
    files = sorted((work / "out").glob("*.jsonl"))
    return [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]


def everything_but(*files):
    return [f"{f}-{n}" for f in range(FILES) if f not in files for n in range(LINES)]


def test_a_file_that_cannot_be_had_is_one_loss_on_record_and_no_empty_batch(server, tmp_path):
    del server.files["data/part-2.txt"]
    server.faults["data/part-4.txt"] = [Fault("cut", at=100), Fault("status", 503)]

    result = run([source(server, tmp_path)], tmp_path)

    assert ids(tmp_path) == everything_but(2)
    assert (result.read, result.written, result.lost_parts) == (500, 500, 1)
    [entry] = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert (entry["kind"], entry["source"]) == ("download_failed", f"{server.url}/data/part-2.txt")
    assert "status 404" in entry["error"]


def test_a_finished_run_asks_for_nothing_again_and_a_second_run_uses_the_files(server, tmp_path):
    run([source(server, tmp_path)], tmp_path)
    server.forget()

    assert run([source(server, tmp_path)], tmp_path).already_finished
    run([source(server, tmp_path)], tmp_path, fresh=True)
    assert server.requests() == []


def test_a_run_that_goes_on_uses_the_list_it_began_with(server, tmp_path):
    """ "Latest" means the same thing twice."""

    class FirstOnly(ProcessingStage):
        """Fails for all but the first file until there is a file `gate`."""

        name = "first_only"

        def process(self, task):
            if not (tmp_path / "gate").exists() and "part-0" not in task.sources()[0]:
                raise OSError(28, "No space left on device")
            return task

    files = dict(server.files)
    del server.files["data/part-5.txt"]

    class Now(Listed):
        def generate_urls(self):
            return [f"{self.prefix}/{name}" for name in sorted(server.files)]

    from gristmill.engine.policies import retry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "MAX_MACHINE", 0)
        with pytest.raises(Exception, match="No space left"):
            run([source(server, tmp_path, generator=Now(server.url)), FirstOnly()], tmp_path)
    assert (tmp_path / "out" / ".gristmill" / "header.json").exists()
    (tmp_path / "gate").touch()
    server.files.update(files)
    run([source(server, tmp_path, generator=Now(server.url)), FirstOnly()], tmp_path)
    assert ids(tmp_path) == everything_but(5)

    run([source(server, tmp_path, generator=Now(server.url)), FirstOnly()], tmp_path, fresh=True)
    assert ids(tmp_path) == everything_but()


def test_another_list_is_refused_when_other_files_are_asked_for(server, tmp_path):
    run([source(server, tmp_path)], tmp_path)
    with pytest.raises(ResumeRefused, match=r"part-5.txt: was there before, is gone now"):
        run([source(server, tmp_path, generator=Listed(server.url, 5))], tmp_path)


def test_a_file_that_is_not_kept_is_removed_after_its_commit_and_not_before(server, tmp_path):
    stages = [source(server, tmp_path, keep_files=False), Waits(tmp_path / "gate")]  # more than Shouts' deadline
    two = LocalExecutor(num_workers=2)
    running = threading.Thread(target=lambda: run(stages, tmp_path, two), daemon=True)
    running.start()
    while len(list((tmp_path / "d").glob("data-part-*"))) < FILES:
        running.join(0.01)
    assert ids(tmp_path) == []
    (tmp_path / "gate").touch()
    running.join()

    assert ids(tmp_path) == everything_but()
    assert [path.name for path in (tmp_path / "d").iterdir()] == []


class HoldsBack(ProcessingStage):
    """Lets all batches pass but the one with this page, which waits until there is a file `gate`; logs what passed."""

    name = "holds_back"
    fusible = False
    lanes = 16  # more than there are batches: none waits for the one that waits

    def __init__(self, url, gate, log):
        self.url, self.gate, self.log = url, str(gate), str(log)

    def process(self, task):
        urls = task.column("url").to_pylist()
        while self.url in urls and not Path(self.gate).exists():
            threading.Event().wait(0.01)
        with Path(self.log).open("a") as log:
            log.writelines(f"{url}\n" for url in urls)
        return task


def test_a_file_read_in_parts_is_there_while_one_of_them_is_under_way_and_gone_after_the_last(tmp_path):
    pages, gate, log = 40, tmp_path / "gate", tmp_path / "log"
    log.touch()
    with crawl_server(1, pages, ("CC-MAIN-2025-21",)) as crawl:
        stage = CommonCrawlDownloadExtractStage(
            "2025-21", "2025-21", str(tmp_path / "d"), html_extraction=ResiliparseExtractor(0), data_prefix=crawl.url,
            index_prefix=crawl.url, transfer=TransferOptions(keep_files=False),
        )  # fmt: skip
        stage.iterator.block_bytes = 10_000
        stages = [stage, HoldsBack(f"https://example.org/{pages - 1}", gate, log)]
        results = []
        running = threading.Thread(
            target=lambda: results.append(run(stages, tmp_path, LocalExecutor(num_workers=2))), daemon=True
        )
        running.start()
        while len(log.read_text().splitlines()) < pages // 2:
            running.join(0.01)
            assert running.is_alive()
        held = [path.name for path in (tmp_path / "d").glob("crawl-data-*")]
        gate.touch()
        running.join()

    assert len(held) == 1
    assert results[0].written == pages
    assert list((tmp_path / "d").iterdir()) == []


def test_a_run_killed_between_commit_and_removal_removes_the_file_when_it_goes_on(server, tmp_path, monkeypatch):
    from gristmill.stages.text.download.base.download import DocumentDownloadStage

    with monkeypatch.context() as patch:
        patch.setattr(DocumentDownloadStage, "after_commit", lambda *_: None)
        run([source(server, tmp_path, keep_files=False)], tmp_path)
    assert len(list((tmp_path / "d").glob("data-part-*"))) == FILES
    run([source(server, tmp_path, keep_files=False)], tmp_path)
    assert list((tmp_path / "d").glob("data-part-*")) == []


def test_the_directory_never_holds_more_than_it_may(server, tmp_path):
    """Sampled while it runs: three files fit, six are needed."""
    size = 40_000
    for f in range(FILES):
        server.files[f"data/part-{f}.txt"] = b"".join(b"%d-%d %s\n" % (f, n, b"x" * 390) for n in range(LINES))
    server.bytes_per_s = 400_000
    most = 3 * size + 30_000
    stop, seen = threading.Event(), []

    def sample():
        while not stop.is_set():
            held = 0
            for path in (tmp_path / "d").glob("*") if (tmp_path / "d").exists() else ():
                try:
                    held += path.stat().st_size
                except FileNotFoundError:
                    continue
            seen.append(held)
            stop.wait(0.002)

    sampling = threading.Thread(target=sample)
    sampling.start()
    try:
        result = run(
            [source(server, tmp_path, keep_files=False, max_disk=most)], tmp_path, LocalExecutor(num_workers=2)
        )
    finally:
        stop.set()
        sampling.join()

    assert result.written == FILES * LINES
    assert max(seen) <= most
    assert max(seen) > size


def test_published_sizes_and_checksums_go_with_the_list(server, tmp_path):
    import hashlib

    class Published(Listed):
        def list_files(self):
            return [
                RemoteFile(f"{self.prefix}/{name}", len(content), f"sha1:{hashlib.sha1(content).hexdigest()}")
                for name, content in sorted(server.files.items())
            ]

    generator = Published(server.url)
    plan = Pipeline("p", stages=[source(server, tmp_path, generator=generator)]).plan(HERE)
    assert plan.input_bytes == sum(map(len, server.files.values()))
    files = Published(server.url).list_files()
    server.files["data/part-3.txt"] = os.urandom(len(server.files["data/part-3.txt"]))  # not what was published
    Published.list_files = lambda _: files

    result = run([source(server, tmp_path, generator=generator)], tmp_path)
    assert ids(tmp_path) == everything_but(3)
    assert result.lost_parts == 1


def test_a_download_that_waits_for_room_says_so(server, tmp_path, caplog):
    content = server.files["data/part-0.txt"] = bytes(20_000)
    most = 100_000
    downloader = TransferDownloader(str(tmp_path / "d"), transfer=TransferOptions(max_disk=most, keep_files=False))
    other = Note(tmp_path / "d" / "other", "https://other.example/")
    with other.held():
        DiskBudget(tmp_path / "d", most, frees=True).claim(other, 90_000)
        waiting = threading.Thread(target=downloader.download, args=(f"{server.url}/data/part-0.txt",))
        waiting.start()
        while waiting.is_alive() and not caplog.records:
            waiting.join(0.01)
    waiting.join()  # the other has been given up with its lock

    [told] = caplog.messages
    assert f"(max_disk is {most:,})" in told
    assert [path.read_bytes() for path in (tmp_path / "d").glob("*part-0*") if path.name[0] != "."] == [content]
