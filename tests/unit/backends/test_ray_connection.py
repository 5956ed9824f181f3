"""Whatever keeps Ray from being reached is said in words somebody new to it can act on."""

import socket
import subprocess
import sys

import pytest

from gristmill.backends.default_executor import default_executor
from gristmill.backends.local import LocalExecutor
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.backends.ray_connection import check_address, check_version, connect, explain
from gristmill.errors import ConfigError, MissingDependency, RunFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io.reader import JsonlReader

WHO = "RayActorPoolExecutor"


def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_nobody_at_the_address_is_said_at_once(monkeypatch):
    address = f"127.0.0.1:{closed_port()}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    expected = (
        rf"^{WHO}: expected a Ray head at RAY_ADDRESS={address}; got: Connection refused. "
        r"Start one with: ray start --head --port=6379, on that machine; or unset RAY_ADDRESS to run on this one$"
    )
    with pytest.raises(RunFailed, match=expected):
        connect(WHO)


def test_the_address_a_dead_cluster_has_left_behind_is_said_with_its_file(monkeypatch, tmp_path):
    address = f"127.0.0.1:{closed_port()}"
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(address)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    expected = (
        rf"^{WHO}: expected a running Ray at {address}, as {tmp_path}/ray/ray_current_cluster says; "
        r"got: Connection refused. That cluster has ended without saying so: delete the file, or set RAY_ADDRESS"
    )
    with pytest.raises(RunFailed, match=expected):
        connect(WHO)


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:port"])
def test_an_address_that_is_none_is_shown_an_example(address):
    with pytest.raises(ConfigError, match=r"expected RAY_ADDRESS as host:port, such as 10.0.0.1:6379; got"):
        check_address(WHO, address)


def test_ray_client_is_refused_with_what_to_do_instead():
    with pytest.raises(ConfigError, match=r"got 'ray://head:10001'. .* run the program on a machine of the cluster"):
        check_address(WHO, "ray://head:10001")


def test_a_ray_too_old_is_named_with_the_command_that_updates_it():
    expected = rf"^{WHO}: expected Ray 2.40 or newer; got 2.9.3. Update it with: pip install -U 'gristmill\[ray\]'$"
    with pytest.raises(ConfigError, match=expected):
        check_version(WHO, "2.9.3")


@pytest.mark.parametrize("version", ["2.40.0", "2.60.0", "3.0.0.dev0"])
def test_newer_ones_will_do(version):
    check_version(WHO, version)


def test_other_versions_on_the_cluster_are_told_from_other_problems():
    # What Ray raises itself, for a cluster with other versions.
    from ray._private.utils import check_version_info

    with pytest.raises(RuntimeError) as raised:
        check_version_info({"ray_version": "2.1.0", "python_version": "3.8.1"}, "This process on node 10.0.0.2")
    error = explain(WHO, "10.0.0.1:6379", raised.value)

    assert isinstance(error, ConfigError)
    assert "expected the same Ray and Python here as on the cluster" in str(error)
    assert "2.1.0" in str(error)


def test_no_ray_on_this_machine_is_said_with_how_to_start_one():
    error = explain(WHO, "auto", ConnectionError("Could not find any running Ray instance."))

    words = "expected a running Ray on this machine; found none. Start one with: ray start --head --port=6379"
    assert str(error) == f"{WHO}: {words}"


def test_anything_else_is_passed_on_in_rays_words():
    error = explain(WHO, None, RuntimeError("no space\nleft"))

    assert str(error) == f"{WHO}: Ray could not be initialised on this machine: no space left"


def test_a_pipeline_says_it_before_it_reads_anything(monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port()}")
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(RunFailed, match="expected a Ray head at RAY_ADDRESS"):
        Pipeline("p", stages=[JsonlReader(str(tmp_path))]).run()


def test_ray_is_the_default_where_an_address_is_set_and_this_machine_elsewhere(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert isinstance(default_executor(), RayActorPoolExecutor)
    monkeypatch.delenv("RAY_ADDRESS")
    assert isinstance(default_executor(), LocalExecutor)


@pytest.mark.slow
def test_ray_is_imported_only_when_an_executor_on_it_runs():
    code = (
        "import sys; from gristmill.backends.ray_actor_pool import RayActorPoolExecutor; RayActorPoolExecutor(); "
        "from gristmill.core.client import RayClient; RayClient(); "
        "from gristmill.pipeline import Pipeline; print('ray' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    assert printed.split() == ["False"]


def test_ray_that_is_not_installed_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not there
    with pytest.raises(MissingDependency, match=r"pip install 'gristmill\[ray\]'"):
        connect(WHO)
