"""A store that is slow, refuses, forgets or loses answers, in the middle of a run and before it.

What may pass is waited for; everything else ends the run in words, blames no document and is gone on from.
"""

import os
import re
import signal
import threading
import time

import pytest
from tests.fault.corpus import make_corpus
from tests.fault.processes import ROOT, Scene, finish, wait_until
from tests.stores.faulty_proxy import LOST, FaultyProxy

pytestmark = [pytest.mark.heavy, pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 8
DEADLINE_S = 240


LAST = f"part-{PARTITIONS - 1:04d}.jsonl"


@pytest.fixture(scope="module")
def corpus(moto, tmp_path_factory):
    """A small corpus on the store; the prefix it is below."""
    directory = tmp_path_factory.mktemp("corpus") / "raw"
    make_corpus(directory, PARTITIONS)
    for file in directory.iterdir():
        moto.put(f"trouble/raw/{file.name}", file.read_bytes())
    return "trouble"


@pytest.fixture
def proxy(moto, corpus, monkeypatch):
    """moto behind a proxy that does no harm yet."""
    made = FaultyProxy(moto)
    with made.running():
        for name, value in made.store.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        made.prefix = corpus
        yield made


@pytest.fixture(scope="module")
def whole(moto, corpus, tmp_path_factory):
    """What an undisturbed run publishes."""
    scene = Scene(tmp_path_factory.mktemp("whole"))
    url = f"{moto.url}/{corpus}"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in moto.environment.items():
            patch.setenv(name, value)
        finish(scene.start("-m", "tests.fault.curate", f"{url}/raw", f"{url}/whole"), deadline_s=DEADLINE_S)
    scene.close()
    return published(moto, corpus, "whole")


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path)
    yield made
    made.close()


@pytest.fixture
def curate(proxy, scene):
    """Start the program; what it makes is below the given name."""

    def start(work, **options):
        url = f"{proxy.store.url}/{proxy.prefix}"
        return scene.start("-m", "tests.fault.curate", f"{url}/raw", f"{url}/{work}", **options)

    return start


def ended(program, *, expected=0):
    return finish(program, expected=expected, deadline_s=DEADLINE_S)


def published(store, prefix, work):
    below = {name: f"{prefix}/{work}/{name}" for name in ("out", "rejects", "run/quarantine")}
    found = {f"{name}/{key}": data for name, place in below.items() for key, data in store.objects(place).items()}
    assert len(found) > PARTITIONS
    return found


def test_a_store_that_asks_again_and_again_for_fewer_requests_only_takes_longer(proxy, curate, whole):
    count, lock = [0], threading.Lock()

    def now_and_then(method, path):
        with lock:
            count[0] += 1
            return (503, "SlowDown", "Please reduce your request rate.") if count[0] % 5 == 0 else None

    proxy.fault = now_and_then
    ended(curate("slow"))
    proxy.fault = lambda method, path: None

    assert count[0] > 50
    assert published(proxy.store, proxy.prefix, "slow") == whole


def test_answers_that_are_lost_on_the_way_are_asked_for_again_and_nothing_is_done_twice(proxy, curate, whole):
    """The client asks again, and is told that the object it has just created is there: it must know its own."""
    seen, lock = set(), threading.Lock()

    def lose_the_first(method, path):
        with lock:
            is_first = method == "PUT" and re.search(r"/(ledger|lease)/", path) and path not in seen
            seen.add(path)
            return LOST if is_first else None

    proxy.fault = lose_the_first
    ended(curate("lost"))
    proxy.fault = lambda method, path: None

    assert sum("/ledger/" in path for path in seen) >= 2
    assert published(proxy.store, proxy.prefix, "lost") == whole


def test_a_token_that_expires_in_the_middle_stops_the_run_and_blames_nobody(proxy, curate, whole, tmp_path):
    gate = tmp_path / "gate"
    gate.write_text("stop\n")
    program = curate("expired", hold=(1, gate))
    wait_until(lambda: proxy.store.keys(f"{proxy.prefix}/expired/run/header.json"), what="the run to begin")
    refuse = (400, "ExpiredToken", "The provided token has expired.")
    proxy.fault = lambda method, path: refuse if method == "PUT" and "/out/" in path else None
    gate.unlink()
    _, errors = ended(program, expected=1)
    proxy.fault = lambda method, path: None
    assert "MachineFailed" in errors
    assert re.search(r"s3://mill/\S+: the access token has expired \(.*ExpiredToken", errors), errors
    assert proxy.store.objects(f"{proxy.prefix}/expired/run/quarantine") == {}
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in errors

    ended(curate("expired"))
    assert published(proxy.store, proxy.prefix, "expired") == whole


def test_a_key_that_may_only_read_is_found_before_any_worker_starts(proxy, curate):
    proxy.fault = lambda method, path: (403, "AccessDenied", "Access Denied.") if method == "PUT" else None
    began = time.monotonic()
    _, errors = ended(curate("denied"), expected=1)

    assert "the store refuses access (AccessDenied: Access Denied.)" in errors
    assert time.monotonic() - began < 60
    assert proxy.store.keys(f"{proxy.prefix}/denied") == []


def test_a_store_that_does_not_hold_conditional_writes_is_refused(proxy, curate):
    proxy.without_headers = {"if-none-match"}
    _, errors = ended(curate("unconditional"), expected=1)

    assert re.search(r"unconditional/run: expected a store that creates an object only if there is none", errors)
    assert proxy.store.keys(f"{proxy.prefix}/unconditional") == []


def test_a_bucket_that_does_not_exist_is_named_within_seconds_and_nothing_is_made(proxy, scene, tmp_path):
    recipe = tmp_path / "copy.yaml"
    recipe.write_text(
        'name: c\nstages:\n  - JsonlReader: {file_paths: "${input}"}\n  - JsonlWriter: {path: "${output}"}\n'
    )
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    good = f"{proxy.store.url}/{proxy.prefix}"
    for source, output in ((f"{good}/raw", "s3://no-such-bucket/out"), ("s3://no-such-bucket/in", f"{good}/out")):
        command = ("-c", "from gristmill.cli.main import main; main()", "run", recipe, "--input", source)
        began = time.monotonic()
        program = scene.start(*command, "--output", output, cwd=cwd)
        _, errors = program.communicate(timeout=DEADLINE_S)
        assert program.returncode == 1
        assert re.search(r"s3://no-such-bucket/\S*: the bucket does not exist", errors), errors
        assert "Traceback" not in errors
        assert time.monotonic() - began < 60
    assert list(cwd.iterdir()) == []
    assert [bucket["Name"] for bucket in proxy.store.client().list_buckets()["Buckets"]] == ["mill"]


def test_an_object_that_is_replaced_while_the_run_goes_on_is_named_and_not_mixed(proxy, moto, curate):
    key, begun, lock = f"{proxy.prefix}/raw/{LAST}", [], threading.Lock()
    before = moto.objects(key)[""]

    def replace_it_when_a_worker_comes_for_it(method, path):
        with lock:
            if method == "PUT" and path.endswith("replaced/run/header.json"):
                begun.append("run")
            if begun == ["run"] and path.partition("?")[0].endswith(LAST):
                begun.append("replaced")
                moto.put(key, before.replace(b"miller", b"tinker"))

    proxy.fault = replace_it_when_a_worker_comes_for_it
    _, errors = ended(curate("replaced"), expected=1)
    moto.put(key, before)

    assert "InputsChanged" in errors
    assert f"s3://mill/{key}" in errors
    done = moto.objects(f"{proxy.prefix}/replaced/out")
    assert len(done) == PARTITIONS - 1
    assert not [name for name, data in done.items() if b"tinker" in data]


def test_of_two_drivers_at_once_the_second_is_told_and_the_first_finishes(proxy, curate, whole, tmp_path):
    gate = tmp_path / "gate"
    gate.write_text("stop\n")
    first = curate("both", hold=(1, gate))
    wait_until(lambda: proxy.store.keys(f"{proxy.prefix}/both/run/header.json"), what="the first to begin")
    _, errors = ended(curate("both"), expected=1)
    assert f"process {first.pid} of" in errors
    assert "is running in it" in errors
    gate.unlink()
    ended(first)

    assert published(proxy.store, proxy.prefix, "both") == whole


def test_a_driver_that_was_overtaken_while_it_stood_still_changes_nothing(proxy, curate, whole, tmp_path):
    gate = tmp_path / "gate"
    gate.write_text("stop\n")
    old = curate("taken", hold=(1, gate))
    wait_until(lambda: proxy.store.keys(f"{proxy.prefix}/taken/run/header.json"), what="the old one to begin")
    old.send_signal(signal.SIGSTOP)
    # As if it had been silent for long enough: what it renews is gone, and it cannot renew it.
    leases = [key for key in proxy.store.keys(f"{proxy.prefix}/taken") if re.search(r"/lease/[0-9a-f]{12}\.json$", key)]
    assert leases
    for key in leases:
        proxy.store.client().delete_object(Bucket=proxy.store.bucket, Key=key)
    ended(curate("taken"))
    done = published(proxy.store, proxy.prefix, "taken")
    gate.unlink()
    old.send_signal(signal.SIGCONT)
    _, errors = ended(old, expected=1)

    assert "has taken over" in errors
    assert done == published(proxy.store, proxy.prefix, "taken") == whole
