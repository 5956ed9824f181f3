"""The run directory on a store, on fsspec's memory: one driver at a time, and one that was overtaken commits nothing.

Real servers are under tests/stores.
"""

import dataclasses
import errno
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MachineError, ResumeRefused
from gristmill.metrics.snapshot import StageCounts
from gristmill.pipeline import Pipeline
from gristmill.pipeline.compile import compile_chain
from gristmill.runs import publication, store_lease
from gristmill.runs.books import RunResult
from gristmill.runs.ledger import CommitRecord
from gristmill.runs.publication import environment_only, publish_all, publish_late, store_options
from gristmill.runs.sinks import LockFile
from gristmill.runs.store_directory import StoreDirectory
from gristmill.runs.store_lease import Lease, NoConditionalWrites, last_holder
from gristmill.stages.exchange import Shuffle
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.storage.remote_file_system import RemoteFileSystem
from gristmill.tasks import DocumentBatch, StagedFile

URL = "memory://runs/out/.gristmill"
TASKS = [DocumentBatch("b", pa.table({"text": ["a"]}))] * 3
HERE = LocalExecutor(num_workers=0)


def plan(min_words=5):
    return compile_chain("p", [ScoreFilter(WordCountFilter(min_words))], TASKS)


def record(root):
    return CommitRecord(root, f"part-{root:05d}", (), (), (("word_count", StageCounts(read=root)),), ())


@pytest.fixture
def store():
    fs = RemoteFileSystem(URL, {})
    yield fs
    fs.remove_all(fs.walk_all("memory://runs"))


@pytest.fixture
def opened(store):
    """Open the directory as a driver does, those before it closed."""
    directories = []

    def open_directory(session="one", the_plan=None, *, close=True):
        for earlier in directories if close else []:
            earlier.close()
        directory = StoreDirectory(URL, session=session, options_of=environment_only)
        directories.append(directory)
        directory.acquire()
        return directory, directory.resume(the_plan or plan(), rejects_path=None)

    yield open_directory
    for directory in directories:
        directory.close()


def names(store, below=URL):
    root = store.full(below)
    return sorted(path.removeprefix(f"{root}/") for path in store.walk_all(below))


def test_what_was_appended_is_found_by_the_next_run_without_any_local_file(opened):
    first, found = opened()
    assert found == {}
    first.append([record(1)])
    first.append([record(0)])
    scratch = first.path

    assert opened("two")[1] == {0: record(0), 1: record(1)}
    assert not scratch.exists()


def test_another_plan_is_refused_with_the_url(opened):
    opened()[0].append([record(0)])
    with pytest.raises(ResumeRefused, match=r"^memory://runs/out/\.gristmill: (?s:.*)min_words 5 then, 6 now"):
        opened("two", plan(6))


@pytest.mark.slow
def test_a_second_driver_is_told_who_runs_here(opened, monkeypatch):
    monkeypatch.setattr(store_lease, "RENEW_S", 0.1)
    opened()
    with pytest.raises(ConfigError, match=r"expected no other run here; process \d+ of .* is running in it"):
        opened("two", close=False)


def take_for_a_process_elsewhere(store, session):
    """As if the claim had been made by another machine, which nobody here can ask about."""
    name = next(
        name for name in names(store, f"{URL}/lease") if name[0].isdecimal() and len(name) == len("00000001.json")
    )
    claim = json.loads(store.read(f"{URL}/lease/{name}"))
    assert claim["session"] == session
    store.write(f"{URL}/lease/{name}", json.dumps({**claim, "machine": "another"}).encode())


@pytest.mark.slow
def test_a_driver_that_is_silent_for_too_long_is_overtaken_and_commits_nothing_more(opened, store, monkeypatch):
    monkeypatch.setattr(store_lease, "EXPIRY_S", 0.5)
    monkeypatch.setattr(store_lease, "POLL_S", 0.05)
    monkeypatch.setattr(store_lease, "RENEW_S", 1000.0)  # it was stopped, say
    old, _ = opened()
    old.append([record(0)])
    take_for_a_process_elsewhere(store, "one")
    new, found = opened("two", close=False)

    assert list(found) == [0]
    with pytest.raises(MachineError, match=r"process \d+ of .* has taken over"):
        old.append([record(1)])
    new.append([record(2)])
    assert list(opened("three")[1]) == [0, 2]


@pytest.mark.slow
def test_a_run_whose_lease_could_not_be_removed_locks_nobody_out(store, monkeypatch):
    """Its process lives on, a notebook say, and starts the next run itself."""
    monkeypatch.setattr(store_lease, "EXPIRY_S", 0.3)
    monkeypatch.setattr(store_lease, "POLL_S", 0.05)
    first = Lease(store, URL, "one")
    first.take()
    beats = store.read(f"{URL}/lease/one.json")
    first.release()
    store.write(f"{URL}/lease/one.json", beats)  # the store was away when it was to be removed

    second = Lease(store, URL, "two")
    second.take()
    assert last_holder(store, URL)[0].session == "two"
    second.release()


def test_a_scratch_directory_that_another_run_takes_for_a_left_one_is_made_again(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make, made = tempfile.mkdtemp, []

    def made_and_taken(**options):
        """What another run does between the two steps: it locks the directory, then removes it."""
        made.append(Path(make(**options)))
        if len(made) == 1:
            made[0].rmdir()
        elif len(made) == 2:
            taken.append(LockFile(made[1] / "lock"))
        return str(made[-1])

    taken = []
    monkeypatch.setattr(tempfile, "mkdtemp", made_and_taken)
    directory = StoreDirectory(URL, session="one", options_of=environment_only)
    assert directory.path == made[2]
    directory.close()
    taken[0].release()


def test_the_ledger_alone_keeps_an_overtaken_driver_out(opened, store):
    """Even if it does not look at its lease at all."""
    old, _ = opened()
    old.append([record(0)])
    store.remove(f"{URL}/lease/one.json")
    new, _ = opened("two", close=False)
    with pytest.raises(MachineError, match="another run has taken over"):
        old.append([record(1)])
    new.append([record(1)])
    assert list(opened("three")[1]) == [0, 1]


@pytest.mark.slow
def test_a_driver_elsewhere_that_is_heard_of_is_not_overtaken(opened, store, monkeypatch):
    monkeypatch.setattr(store_lease, "RENEW_S", 0.1)
    monkeypatch.setattr(store_lease, "POLL_S", 0.05)
    opened()
    take_for_a_process_elsewhere(store, "one")
    with pytest.raises(ConfigError, match="expected no other run here"):
        opened("two", close=False)
    assert "two.json" not in names(store, f"{URL}/lease")


def test_a_lease_that_was_released_is_free_at_once(store):
    for session in ("one", "two", "three"):
        lease = Lease(store, URL, session)
        lease.take()
        lease.release()
    assert names(store) == ["lease/00000003.json"]


@pytest.mark.slow
def test_of_a_store_without_conditional_writes_is_said_that_it_will_not_do():
    directory = StoreDirectory("https://127.0.0.1:1/run", session="one", options_of=environment_only)
    with pytest.raises(NoConditionalWrites, match=r"^https://127\.0\.0\.1:1/run: expected a store that creates"):
        directory.acquire()
    directory.close()


def test_starting_over_makes_earlier_lines_count_no_more(opened, store):
    first, _ = opened()
    first.append([record(0)])
    store.write(f"{URL}/quarantine/a.jsonl", b"{}\n")
    first.write_report(RunResult([], {}))
    first.clear()
    assert first.resume(plan(), rejects_path=None) == {}
    first.append([record(2)])

    again, found = opened("two")
    assert list(found) == [2]
    assert not again.has_report()
    assert not [name for name in names(store) if name.startswith("quarantine")]


def test_a_run_into_a_store_has_its_directory_there_and_is_continued(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        store.write(f"memory://runs/in/{number}.jsonl", b'{"text": "%d"}\n' % number)
    stages = [JsonlReader("memory://runs/in"), JsonlWriter("memory://runs/out")]
    result = Pipeline("p", stages=stages).run(HERE, checkpoint_path=URL)
    again = Pipeline("p", stages=stages).run(HERE, checkpoint_path=URL)

    assert (result.run_dir, result.written) == (URL, 3)
    assert again.already_finished
    assert json.loads(store.read(f"{URL}/status.json"))["state"] == "finished"
    assert not [name for name in names(store) if name.startswith(("tmp", "lease/one"))]
    assert [path.name for path in Path.cwd().iterdir()] == []


def test_the_writers_options_reach_everything_on_its_store():
    writer = JsonlWriter("s3://b/out", write_kwargs={"storage_options": {"key": "k"}})
    made = compile_chain("p", [writer], TASKS)
    options_of = store_options(made)
    assert options_of("s3://b/out/.gristmill/ledger") == {"key": "k"}
    assert options_of("s3://other/rejects") == {"key": "k"}
    assert options_of("gs://b/out") == options_of("/local") == {}


def test_a_claim_that_cannot_be_read_is_nobodys(store):
    store.write(f"{URL}/lease/00000007.json", b"\0 damaged")
    lease = Lease(store, URL, "one")
    lease.take()
    lease.release()
    assert names(store, f"{URL}/lease") == ["00000008.json"]


def test_a_process_that_is_gone_is_known_to_be():
    claim = store_lease.own_claim("one")
    assert claim.is_gone() is False
    assert dataclasses.replace(claim, began=claim.began - 100).is_gone() is True
    assert dataclasses.replace(claim, pid=2**22 + 1).is_gone() is True
    assert dataclasses.replace(claim, machine="another").is_gone() is None


def test_an_output_on_a_store_may_have_its_run_directory_on_a_disk(store, tmp_path):
    store.write("memory://runs/in/a.jsonl", b'{"text": "a"}\n')
    stages = [JsonlReader("memory://runs/in"), JsonlWriter("memory://runs/out")]
    first = Pipeline("p", stages=stages).run(HERE, checkpoint_path=tmp_path / "run")
    again = Pipeline("p", stages=stages).run(HERE, checkpoint_path=tmp_path / "run")

    assert (first.run_dir, again.already_finished) == (str(tmp_path / "run"), True)
    assert names(store, "memory://runs/out") == [".gristmill/lease/00000002.json", "a.jsonl"]


@pytest.mark.slow
def test_an_output_on_a_store_is_kept_by_one_run_whatever_its_run_directory(store, tmp_path, monkeypatch):
    monkeypatch.setattr(store_lease, "RENEW_S", 0.1)
    store.write("memory://runs/in/a.jsonl", b'{"text": "a"}\n')
    lease = Lease(store, "memory://runs/out/.gristmill", "another")
    lease.take()
    stages = [JsonlReader("memory://runs/in"), JsonlWriter("memory://runs/out")]
    with pytest.raises(ConfigError, match=r"runs/out/\.gristmill: expected no other run here; process \d+"):
        Pipeline("p", stages=stages).run(HERE, checkpoint_path=tmp_path / "run")
    lease.release()


def test_publication_that_was_cut_off_is_done_by_the_next_run(store):
    """The line was written, and the driver killed before, during or after the copy."""
    files = [
        StagedFile(f"memory://runs/out/.gristmill/tmp/s/{name}.0", f"memory://runs/out/{name}", 2, 1, "")
        for name in ("before", "between", "after", "nowhere")
    ]
    store.write(files[0].temporary, b"{}")
    store.write(files[1].temporary, b"{}")
    store.write(files[1].final, b"{}")
    store.write(files[2].final, b"{}")
    found = publish_late(files, environment_only)

    assert found == {file.final: 2 for file in files[:3]}
    assert names(store, "memory://runs/out") == ["after", "before", "between"]
    publish_all(files[:3], environment_only)  # once more: nothing happens, and nothing is missing
    with pytest.raises(FileNotFoundError):
        publish_all(files[3:], environment_only)


@pytest.mark.parametrize(("number", "tries"), [(errno.EBUSY, 3), (errno.ECONNREFUSED, 3), (errno.EACCES, 1)])
def test_only_what_may_pass_is_tried_again(monkeypatch, number, tries):
    monkeypatch.setattr(publication, "PAUSES_S", (0.0, 0.0))
    made = []

    def refused():
        made.append(1)
        error = MachineError("s3://b: no")
        error.errno = number
        raise error

    with pytest.raises(MachineError, match="s3://b: no"):
        publication.patiently(refused)
    assert len(made) == tries


def test_a_pipeline_with_an_exchange_writes_to_a_store_from_a_run_directory_on_a_disk(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store.write("memory://runs/in/a.jsonl", b'{"text": "a"}\n{"text": "b"}\n')
    stages = [JsonlReader("memory://runs/in"), Shuffle(seed=1), JsonlWriter("memory://runs/out")]
    result = Pipeline("p", stages=stages).run(HERE, checkpoint_path=tmp_path / "run")

    assert result.written == 2
    assert Pipeline("p", stages=stages).run(HERE, checkpoint_path=tmp_path / "run").already_finished
    with pytest.raises(ConfigError, match="expected a directory on a disk, because the pipeline has an exchange"):
        Pipeline("p", stages=stages).run(HERE, checkpoint_path=URL)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_whoever_looks_is_told_who_runs_and_who_ran(opened, store):
    assert last_holder(store, URL) is None
    directory, _ = opened()
    assert last_holder(store, URL) == (store_lease.own_claim("one"), True)
    directory.close()
    assert last_holder(store, URL) == (store_lease.own_claim("one"), False)
