"""Servers shared by the tests of one process."""

import pytest
from tests.object_stores import moto_server, seaweedfs_server


@pytest.fixture(scope="session")
def moto(tmp_path_factory):
    with moto_server(tmp_path_factory.mktemp("moto")) as store:
        yield store


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory):
    with seaweedfs_server(tmp_path_factory.mktemp("seaweedfs")) as store:
        yield store


@pytest.fixture(params=["moto", "seaweedfs"])
def store(request, monkeypatch):
    """Each server in turn, reached by the environment alone, as a user would."""
    found = request.getfixturevalue(request.param)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    _forget_clients()
    yield found
    _forget_clients()


def _forget_clients():
    """fsspec keeps its clients by their options, and these say nothing about the environment."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
