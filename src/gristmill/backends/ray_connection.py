"""`connect`: reach Ray, or say what is wrong in words a newcomer can act on. Shared by the executors that run on Ray.

Ray is imported here and in what runs after this, and nowhere else.
"""

import os
import sys
from pathlib import Path
from types import ModuleType

from gristmill.backends.ray_head import problem_at
from gristmill.errors import ConfigError, RunFailed, require

OLDEST = (2, 40)
ASKED = "(If that cluster asks for a token, set RAY_AUTH_MODE=token here too.)"
STARTING = "Start one with: ray start --head --port=6379"


def connect(who: str, *, dashboard: bool = False) -> ModuleType:
    """Return Ray, initialised: as it is, or with the cluster RAY_ADDRESS names, or with a new one on this machine.

    A cluster that is started here stays until the program ends: so the next run begins at once, and final tasks of a
    pipeline without a writer can still be looked at. `dashboard` is for such a cluster.
    """
    ray = require("ray", extra="ray")
    check_version(who, ray.__version__)
    if ray.is_initialized():
        return ray
    address = os.environ.get("RAY_ADDRESS") or None
    if address is not None:
        check_address(who, address)
    # Without an address Ray would join whatever it finds on this machine, another user's included.
    here = {"address": "local", "include_dashboard": dashboard, "_node_ip_address": "127.0.0.1"}
    where = here if address is None else {"address": address}
    try:
        ray.init(log_to_driver=False, logging_level="error", **where)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise explain(who, address, error) from error
    return ray


def in_use() -> bool:
    """Whether this program runs on Ray: RAY_ADDRESS names a cluster, or it has initialised Ray itself."""
    if os.environ.get("RAY_ADDRESS"):
        return True
    ray = sys.modules.get("ray")  # a program that has not imported it has not initialised it
    return ray is not None and bool(ray.is_initialized())


def cluster_has_gpu(who: str) -> bool:
    """Whether some machine of the cluster has a GPU; before one is started here, whether this machine has."""
    if not in_use():
        from gristmill.backends.local.executor import find_gpus

        return bool(find_gpus(None, None))
    return any(node["Alive"] and node["Resources"].get("GPU") for node in connect(who).nodes())


def check_version(who: str, version: str) -> None:
    """Raise ConfigError for a Ray too old."""
    parts = version.split(".")
    if tuple(int(part) for part in parts[:2] if part.isdigit()) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise ConfigError(
            f"{who}: expected Ray {wanted} or newer; got {version}. Update it with: pip install -U 'gristmill[ray]'"
        )


def check_address(who: str, address: str) -> None:
    """Raise if no Ray can be reached there: Ray itself would try for minutes."""
    if address == "local":
        return
    if address == "auto":
        _check_noted_address(who)
        return
    if address.startswith("ray://"):
        raise ConfigError(
            f"{who}: expected RAY_ADDRESS as host:port of a cluster this machine is part of; got {address!r}. "
            "Ray Client passes all data through one process: run the program on a machine of the cluster instead, "
            "for example with: ray job submit"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{who}: expected RAY_ADDRESS as host:port, such as 10.0.0.1:6379; got {address!r}")
    problem = problem_at(host, int(port))
    if problem:
        raise RunFailed(
            f"{who}: expected a Ray head at RAY_ADDRESS={address}; got: {problem}. {STARTING}, on that machine; "
            "or unset RAY_ADDRESS to run on this one"
        )


def _check_noted_address(who: str) -> None:
    """Raise if the cluster that was last started on this machine is gone and has left its address behind."""
    note = _ray_directory() / "ray_current_cluster"
    noted = note.read_text().strip() if note.is_file() else ""
    host, _, port = noted.rpartition(":")
    problem = problem_at(host, int(port)) if host and port.isdigit() else ""
    if problem:
        raise RunFailed(
            f"{who}: expected a running Ray at {noted}, as {note} says; got: {problem}. That cluster has ended without "
            f"saying so: delete the file, or set RAY_ADDRESS to another. {STARTING}"
        )


def _ray_directory() -> Path:
    """Where Ray notes which cluster was started last, unless told otherwise."""
    on_linux = os.environ.get("TMPDIR") if sys.platform.startswith("linux") else None
    return Path(os.environ.get("RAY_TMPDIR") or on_linux or "/tmp") / "ray"  # noqa: S108  # Ray's own rule


def explain(who: str, address: str | None, error: Exception) -> RunFailed | ConfigError:
    """What Ray said when it could not be initialised, and what to do about it."""
    said = " ".join(str(error).split())
    if "ersion mismatch" in said:
        return ConfigError(
            f"{who}: expected the same Ray and Python here as on the cluster; {said} "
            "Install the cluster's versions in this environment, or start the cluster from it."
        )
    if address == "auto" or "Could not find any running Ray instance" in said:
        return RunFailed(f"{who}: expected a running Ray on this machine; found none. {STARTING}")
    where = f"at {address}" if address else "on this machine"
    token = "" if address is None or "RAY_AUTH_MODE" in os.environ else f" {ASKED}"
    return RunFailed(f"{who}: Ray could not be initialised {where}: {said}{token}")


def check_connected() -> None:
    """Refuse to fetch from a cluster this program has left: Ray would start another one, and look there."""
    import ray

    if not ray.is_initialized():
        raise RunFailed(
            "results: expected Ray to be still running, to fetch a task; it was shut down. Look at the tasks before "
            "ray.shutdown(), or let RayClient.stop() end Ray: it fetches them first"
        )
