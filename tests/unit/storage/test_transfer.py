"""A file is fetched whole or not at all, whatever its server does."""

import hashlib
import os
import threading
from pathlib import Path

import pytest

from gristmill.errors import ConfigError, DownloadFailed, MachineError
from gristmill.storage import transfer
from gristmill.storage.disk_budget import DiskBudget
from gristmill.storage.download_notes import Note, Told
from gristmill.storage.transfer import RemoteFile, TransferOptions, fetch_file, fetch_text, remote_size
from gristmill.testing.file_server import Fault, MisbehavingFileServer

CONTENT = os.urandom(300_000)
SHA1 = f"sha1:{hashlib.sha1(CONTENT).hexdigest()}"
NAME = "a.warc.gz"
pytestmark = pytest.mark.usefixtures("quick_downloads")


@pytest.fixture(scope="module")
def serving():
    with MisbehavingFileServer() as server:
        yield server


@pytest.fixture
def server(serving):
    serving.files = {NAME: CONTENT}
    serving.faults.clear()
    serving.has_tags = serving.heeds_conditions = True
    serving.forget()
    return serving


def fetch(server, tmp_path, *, size=None, version="", **options):
    note = Note(tmp_path / "d" / NAME, f"{server.url}/{NAME}")
    file = RemoteFile(f"{server.url}/{NAME}", size, version)
    return Path(fetch_file(file, note, TransferOptions(**{"max_retries": 3, "timeout": 1, **options}))).read_bytes()


def test_a_file_is_fetched_once_and_then_there(server, tmp_path):
    assert fetch(server, tmp_path) == CONTENT
    assert fetch(server, tmp_path) == CONTENT
    assert len(server.requests()) == 1
    assert "gristmill/" in server.requests()[0].user_agent
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == [f".{NAME}.json", NAME]


FAULTS = {
    "cut": [Fault("cut", at=100_000)],
    "cut twice": [Fault("cut", at=100_000), Fault("cut", at=50_000)],
    "cut at once": [Fault("cut", at=0)],
    "stall": [Fault("stall", at=100_000)],
    "too long": [Fault("long", at=10)],
    "403": [Fault("status", 403)],
    "429": [Fault("status", 429, retry_after="0.01")],
    "503": [Fault("status", 503), Fault("status", 503, retry_after="0")],
    "500": [Fault("status", 500)],
    "date": [Fault("status", 503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")],
    "416": [Fault("cut", at=100_000), Fault("status", 416)],
    "whole for a range": [Fault("cut", at=100_000), Fault("whole")],
}


@pytest.mark.slow
@pytest.mark.parametrize("has_tags", [True, False])
@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_every_fault_that_passes_leads_to_the_right_file(server, tmp_path, faults, has_tags):
    server.faults[NAME] = list(faults)
    server.has_tags = has_tags

    assert fetch(server, tmp_path) == CONTENT
    assert not server.faults[NAME]


@pytest.mark.parametrize("known", [{"size": len(CONTENT)}, {"version": SHA1}, {}])
def test_an_end_without_a_length_is_compared_with_what_was_listed_or_the_server_says(server, tmp_path, known):
    server.faults[NAME] = [Fault("unmeasured", at=100_000), Fault("unmeasured", at=len(CONTENT))]

    assert fetch(server, tmp_path, **known) == CONTENT
    assert not server.faults[NAME]


def test_only_the_rest_of_a_file_is_asked_for(server, tmp_path):
    server.faults[NAME] = [Fault("cut", at=100_000), Fault("cut", at=150_000)]
    fetch(server, tmp_path)

    assert [seen.range for seen in server.requests()] == ["", "bytes=100000-", "bytes=250000-"]
    assert server.sent == len(CONTENT)


def test_without_a_tag_or_a_checksum_a_file_begins_anew_and_with_a_checksum_it_goes_on(server, tmp_path):
    server.has_tags = False
    server.faults[NAME] = [Fault("cut", at=100_000)]
    assert fetch(server, tmp_path) == CONTENT
    assert [seen.range for seen in server.requests()] == ["", ""]

    server.forget()
    server.faults[NAME] = [Fault("cut", at=100_000)]
    assert fetch(server, tmp_path / "2", version=SHA1) == CONTENT
    assert [seen.range for seen in server.requests()] == ["", "bytes=100000-"]


@pytest.mark.parametrize("heeds_conditions", [True, False])
def test_a_file_that_changes_half_way_is_never_put_together_of_two(server, tmp_path, heeds_conditions):
    server.heeds_conditions = heeds_conditions
    server.faults[NAME] = [Fault("cut", at=100_000), Fault("changed")]
    assert fetch(server, tmp_path) == CONTENT[::-1]

    first, rest = server.requests()[:2]
    assert ("if-range" in first.headers, rest.headers["if-range"].strip('"')) == (
        False,
        hashlib.md5(CONTENT).hexdigest(),
    )


@pytest.mark.parametrize(
    ("fault", "promised", "said"),
    [
        (Fault("short", at=10), {"size": len(CONTENT)}, "a file of 299,990 bytes where 300,000 were listed"),
        (Fault("garbled"), {"version": SHA1}, "where sha1:"),
        (Fault("changed"), {"version": 'etag:"0"'}, 'where "0" was listed'),
        (Fault("bomb"), {"version": SHA1}, "where sha1:"),
        (Fault("status", 404), {}, "status 404 at try 1"),
    ],
)
def test_a_file_that_is_not_what_was_promised_is_lost_with_the_reason(server, tmp_path, fault, promised, said):
    server.faults[NAME] = [fault] * 4
    with pytest.raises(DownloadFailed, match=said) as raised:
        fetch(server, tmp_path, **promised)

    assert raised.value.is_final
    assert not (tmp_path / "d" / NAME).exists()
    assert "/127.0.0.1" in str(raised.value)


def test_a_fault_that_stays_is_a_loss_after_the_last_try(server, tmp_path):
    server.faults[NAME] = [Fault("status", 503)] * 9
    with pytest.raises(DownloadFailed, match="got status 503 at try 4"):
        fetch(server, tmp_path)
    assert len(server.requests()) == 4


@pytest.mark.slow
def test_tries_that_bring_something_are_not_counted(server, tmp_path):
    large = os.urandom(12 << 20)
    server.files[NAME] = large
    server.faults[NAME] = [Fault("cut", at=(1 << 20) + 5)] * 10

    assert fetch(server, tmp_path, max_retries=1) == large
    assert server.sent == len(large)


def test_what_another_tool_left_under_the_name_is_not_taken_for_the_file(server, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / NAME).write_bytes(CONTENT[:1000])
    assert fetch(server, tmp_path) == CONTENT


def test_a_whole_file_of_another_tool_is_taken_if_its_checksum_is_published(server, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / NAME).write_bytes(CONTENT)
    assert fetch(server, tmp_path, size=len(CONTENT), version=SHA1) == CONTENT
    assert server.requests() == []


def test_a_part_of_another_version_of_the_file_is_not_continued(server, tmp_path):
    note = Note(tmp_path / "d" / NAME, f"{server.url}/{NAME}")
    (tmp_path / "d").mkdir()
    Path(note.part_path).write_bytes(b"x" * 1000)
    note.tell(Told(note.url, len(CONTENT), '"another"'))

    assert fetch(server, tmp_path) == CONTENT


def test_a_mirror_is_asked_where_the_first_has_nothing(server, tmp_path):
    with MisbehavingFileServer({f"m/{NAME}": CONTENT}) as mirror:
        server.faults[NAME] = [Fault("cut", at=100_000), Fault("status", 404)]
        assert fetch(server, tmp_path, mirrors=((server.url, f"{mirror.url}/m"),)) == CONTENT
        assert [seen.range for seen in mirror.requests()] == ["bytes=100000-"]  # the tags agree: so do the bytes


def test_two_who_want_the_same_file_fetch_it_once(server, tmp_path):
    got = []
    threads = [threading.Thread(target=lambda: got.append(fetch(server, tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [CONTENT] * 4
    assert len(server.requests()) == 1


def test_a_full_disk_is_the_machines_and_no_fault_of_the_file(server, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(transfer.os, "pwrite", full)
    with pytest.raises(OSError, match="No space left") as raised:
        fetch(server, tmp_path)
    assert not isinstance(raised.value, DownloadFailed)


def test_the_size_and_the_text_of_a_list_are_asked_for(server):
    server.files["l.gz"] = __import__("gzip").compress(b"a\nb\n")
    assert remote_size(f"{server.url}/{NAME}", TransferOptions()) == len(CONTENT)
    assert remote_size(f"{server.url}/none", TransferOptions()) is None
    assert fetch_text(f"{server.url}/l.gz", TransferOptions(), who="w") == b"a\nb\n"
    server.faults["l.gz"] = [Fault("bomb")]
    with pytest.raises(ConfigError, match=r"w: expected a list at .*none; got status 404"):
        fetch_text(f"{server.url}/none", TransferOptions(), who="w")


@pytest.mark.parametrize("damage", [lambda packed: packed[:-4], lambda packed: packed[:20] + b"x" + packed[21:]])
def test_a_damaged_list_is_an_error_and_not_a_shorter_list(server, damage):
    server.files["l.gz"] = damage(__import__("gzip").compress(os.urandom(100)))
    with pytest.raises(ConfigError, match="expected"):
        fetch_text(f"{server.url}/l.gz", TransferOptions(), who="w")


def test_a_list_that_unpacks_without_end_is_refused(server, monkeypatch):
    monkeypatch.setattr(transfer, "MAX_TEXT_BYTES", 1 << 20)
    server.files["l.gz"] = __import__("gzip").compress(bytes(2 << 20))
    with pytest.raises(ConfigError, match="expected at most 1,048,576 bytes"):
        fetch_text(f"{server.url}/l.gz", TransferOptions(), who="w")


@pytest.mark.parametrize(
    "options", [{"max_connections": 0}, {"max_retries": -1}, {"timeout": 0}, {"max_disk": "x"}, {"mirrors": ("a",)}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigError, match="expected"):
        TransferOptions(**options)


# The disk budget


def budget_of(tmp_path, most, *, frees=True):
    return DiskBudget(tmp_path / "d", most, frees=frees)


def test_what_does_not_fit_waits_until_there_is_room(tmp_path):
    budget = budget_of(tmp_path, 100_000)
    first, second = Note(tmp_path / "d" / "1", "u1"), Note(tmp_path / "d" / "2", "u2")
    told = []
    with first.held():
        budget.claim(first, 60_000)

        def claim():
            with second.held():
                budget.claim(second, 60_000, told.append)

        waiting = threading.Thread(target=claim)
        waiting.start()
        while not told:
            waiting.join(0.01)
    waiting.join()  # the first has been given up with its lock
    assert "of room in" in told[0]


def test_what_never_fits_is_said_at_once(tmp_path):
    note = Note(tmp_path / "d" / "1", "u1")
    with note.held(), pytest.raises(MachineError, match="alone has 200,000"):
        budget_of(tmp_path, 100_000).claim(note, 200_000)
    (tmp_path / "d" / "others").write_bytes(bytes(90_000))
    with note.held(), pytest.raises(MachineError, match="not downloaded here have 90,000"):
        budget_of(tmp_path, 100_000).claim(note, 20_000)


def test_where_files_are_kept_a_full_directory_is_said_and_not_waited_for(tmp_path):
    one, two = Note(tmp_path / "d" / "1", "u1"), Note(tmp_path / "d" / "2", "u2")
    with one.held():
        Path(one.part_path).write_bytes(bytes(60_000))
        one.finish()
    with two.held(), pytest.raises(MachineError, match="files are kept"):
        budget_of(tmp_path, 100_000, frees=False).claim(two, 60_000)
