"""The storage layer against real S3 servers: what it says when the store refuses, and that it makes nothing up."""

import errno
import time

import pytest

from gristmill.errors import MachineError, NoInputError
from gristmill.storage.atomic_write import stage_file, write_file
from gristmill.storage.file_system import file_system
from gristmill.storage.paths import list_files

pytestmark = [pytest.mark.heavy, pytest.mark.slow]


def test_a_bucket_that_does_not_exist_is_named_and_not_created(store):
    url = "s3://no-such-bucket/out"
    for attempt in (
        lambda: write_file(f"{url}/a", [b"1"]),
        lambda: stage_file(f"{url}/a", [b"1"]),
        lambda: file_system(url).make_directory(url) or file_system(url).create(f"{url}/a", b"1"),
        lambda: list_files(url),
        lambda: list_files(f"{url}/*.jsonl"),
    ):
        began = time.monotonic()
        with pytest.raises(MachineError, match=r"no-such-bucket.*the bucket does not exist") as caught:
            attempt()
        assert caught.value.errno == errno.ENOENT
        assert time.monotonic() - began < 10
    assert "no-such-bucket" not in [bucket["Name"] for bucket in store.client().list_buckets()["Buckets"]]


def test_a_prefix_without_objects_is_no_input(store):
    with pytest.raises(NoInputError, match="expected a file at 's3://mill/nothing'"):
        list_files(f"{store.url}/nothing")


@pytest.mark.parametrize("options", [{"key": "nobody", "secret": "topsecret"}, {"secret": "topsecret"}])
def test_a_wrong_key_is_said_without_repeating_it(seaweedfs, monkeypatch, options):
    for name, value in seaweedfs.environment.items():
        monkeypatch.setenv(name, value)
    seaweedfs.put("keys/a.jsonl", b"{}\n")
    options = {"key": seaweedfs.environment["AWS_ACCESS_KEY_ID"], "endpoint_url": seaweedfs.endpoint, **options}
    for attempt in (
        lambda: list_files(f"{seaweedfs.url}/keys", storage_options=options),
        lambda: write_file(f"{seaweedfs.url}/keys/b", [b"1"], storage_options=options),
    ):
        with pytest.raises(MachineError, match=r"the store refuses|does not know|does not belong") as caught:
            attempt()
        assert caught.value.errno == errno.EACCES
        assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "http://no-such-host.invalid"])
def test_a_store_that_cannot_be_reached_is_said_within_seconds(moto, endpoint):
    options = {"endpoint_url": endpoint, "key": "k", "secret": "s"}
    began = time.monotonic()
    with pytest.raises(MachineError, match=r"^s3://mill/a: the store cannot be reached") as caught:
        file_system("s3://mill/a", options).status("s3://mill/a")
    assert caught.value.errno == errno.ECONNREFUSED
    assert time.monotonic() - began < 20


def test_an_upload_in_parts_that_is_torn_leaves_no_object_and_no_parts(store):
    def torn():
        yield b"x" * (60 << 20)  # more than one part
        raise RuntimeError

    with pytest.raises(RuntimeError):
        stage_file(f"{store.url}/torn/a", torn())
    assert store.keys("torn") == []
    assert not store.client().list_multipart_uploads(Bucket=store.bucket).get("Uploads")


def test_parts_left_by_a_killed_upload_are_given_up_below_a_directory_only(store):
    client = store.client()
    for key in ("left/.gristmill/tmp/s/a", "left-alone/a"):
        client.create_multipart_upload(Bucket=store.bucket, Key=key)
    file_system(store.url).abort_uploads(f"{store.url}/left")
    uploads = client.list_multipart_uploads(Bucket=store.bucket).get("Uploads", [])
    assert [upload["Key"] for upload in uploads] == ["left-alone/a"]
    file_system(store.url).abort_uploads(f"{store.url}/left-alone")


def test_a_changed_object_has_another_version(store):
    store.put("version/a", b"one")
    fs = file_system(store.url)
    first = fs.status(f"{store.url}/version/a")
    assert list_files(f"{store.url}/version") == [first]
    store.put("version/a", b"two")
    assert fs.status(f"{store.url}/version/a").version != first.version


def test_an_empty_object_that_stands_for_a_directory_is_not_a_file(store):
    for key in ("marked/", "marked/sub/"):
        store.put(key, b"")
    store.put("marked/sub/a.jsonl", b"{}\n")
    assert [status.path for status in list_files(f"{store.url}/marked")] == [f"{store.url}/marked/sub/a.jsonl"]
