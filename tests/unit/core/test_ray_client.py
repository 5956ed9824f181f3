"""RayClient starts Ray for a program and stops it again; a cluster of somebody else's is used and left alone."""

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from tests.ray_cluster import QUIET

from gristmill.core.ray_client import TEMP_DIR, RayClient, free_port, own_temp_dir
from gristmill.errors import ConfigError, RunFailed


@pytest.fixture
def listener():
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture(autouse=True)
def _no_address(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)


def answers(address):
    host, _, port = address.rpartition(":")
    with socket.socket() as caller:
        return caller.connect_ex((host, int(port))) == 0


def test_a_default_port_that_is_taken_is_replaced_by_the_next_free_one(listener):
    assert free_port(listener, name="ray_port", others=True) > listener


def test_two_services_do_not_get_the_same_port(listener):
    first = free_port(listener, name="ray_port", others=True)

    assert free_port(listener, name="ray_metrics_port", others=True, taken={first}) > first


def test_ports_that_ray_keeps_for_its_workers_are_passed_over():
    assert free_port(10001, name="ray_client_server_port", others=True, taken={10001}) >= 20000


def test_a_port_of_rays_workers_is_refused():
    message = r"^RayClient: expected ray_client_server_port outside of 10002 to 19999, which Ray keeps for its workers"
    with pytest.raises(ConfigError, match=message):
        RayClient(ray_client_server_port=10500).start()


def test_a_port_somebody_chose_has_to_be_free(listener):
    message = rf"^RayClient: expected ray_port to be free; got {listener}, which another program listens on"
    with pytest.raises(ConfigError, match=message):
        RayClient(ray_port=listener).start()


def test_a_capture_file_that_exists_is_not_overwritten(tmp_path):
    (tmp_path / "log").touch()
    with pytest.raises(ConfigError, match=r"^RayClient: expected a ray_stdouterr_capture_file that does not exist yet"):
        RayClient(ray_stdouterr_capture_file=str(tmp_path / "log"))


def test_a_temporary_directory_of_ones_own_is_kept():
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        assert own_temp_dir(directory) == directory
        assert own_temp_dir(f"{directory}/new") == f"{directory}/new"


@pytest.mark.skipif(os.getuid() == 0, reason="to root every directory is its own")
def test_a_temporary_directory_somebody_chose_has_to_be_writable():
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(stat.S_IRUSR)
        with pytest.raises(ConfigError, match=r"^RayClient: expected a ray_temp_dir you can write to"):
            own_temp_dir(directory)


def test_a_temporary_directory_too_long_for_a_socket_is_refused():
    with pytest.raises(ConfigError, match=r"expected a ray_temp_dir of at most [34][0-9] characters, .*; got 91"):
        own_temp_dir("/tmp/" + "x" * 86)


def test_the_default_directory_goes_where_ray_is_told_to_put_it(monkeypatch):
    monkeypatch.setenv("RAY_TMPDIR", "/scratch/me")

    assert own_temp_dir(TEMP_DIR) == "/scratch/me/ray"


def test_a_cluster_that_is_there_is_used_and_left_alone(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    with RayClient() as client:
        assert client.ray_process is None
    assert os.environ["RAY_ADDRESS"] == "10.0.0.1:6379"


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.xdist_group("ray")
@pytest.mark.usefixtures("no_cluster")
def test_ray_is_there_while_the_client_is_and_gone_afterwards(tmp_path):
    capture = tmp_path / "ray.log"
    client = RayClient(
        num_cpus=1, include_dashboard=False, object_store_memory=80 << 20, ray_stdouterr_capture_file=str(capture)
    )
    with client:
        address = os.environ["RAY_ADDRESS"]
        assert answers(address)
    assert not answers(address)
    assert "RAY_ADDRESS" not in os.environ
    assert "Ray runtime started" in capture.read_text()


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.xdist_group("ray")
@pytest.mark.usefixtures("no_cluster")
def test_what_ray_says_when_it_does_not_start_is_passed_on():
    with pytest.raises(RunFailed, match=r"(?s)^RayClient: expected Ray to start at .*; it has ended. Ray said:.*"):
        RayClient(object_store_memory=1, include_dashboard=False).start()
    assert "RAY_ADDRESS" not in os.environ


def test_the_default_directory_is_that_of_ray():
    assert RayClient().ray_temp_dir == TEMP_DIR
