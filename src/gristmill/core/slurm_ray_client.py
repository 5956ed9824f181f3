"""`SlurmRayClient`: one Ray cluster over the nodes of a Slurm job.

The same program is started on every node (`srun`, one process a node). On the first, `start` returns when all others
have joined; on the others it does not return: they work until the first is done, and end.

    node 0   ray start --head ──▶ address file ──▶ waits for all nodes ──▶ returns, RAY_ADDRESS is set
    node k   waits for the address file ──▶ ray start --address ──▶ ends when the head is gone

Ray runs as a child of this process, so it ends with the job and nothing else of the user's is touched. The cluster lets
in who knows a token made for this job, which is in the address file, readable by the user only; with RAY_AUTH_MODE set,
the user's own way is kept.
"""

import getpass
import importlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from gristmill.core.slurm_environment import SlurmStep
from gristmill.errors import ConfigError, MissingDependency, RunFailed, require

LOOK_S = 0.5  # between two looks at the shared directory or the cluster
END_S = 30.0  # for Ray to end


@dataclass
class SlurmRayClient:
    """A context manager around a cluster; with RAY_ADDRESS set, somebody else's, which is left alone.

    `ray_port`           where the head listens; another free port if it is taken
    `ray_temp_dir`       Ray's own files, on a disk of the node; a directory of the user's own if not given
    `num_cpus`, `num_gpus`, `object_store_memory`   of each node; as Slurm and Ray find them if not given
    `worker_connect_timeout_s`   how long nodes may take to find each other
    `cleanup_on_start`   end every Ray of this user on the node first. Off, unlike elsewhere: on a shared node that
                         would end another job's
    """

    ray_port: int = 6379
    ray_temp_dir: str | None = None
    include_dashboard: bool = True
    num_cpus: int | None = None
    num_gpus: int | None = None
    object_store_memory: int | None = None
    worker_connect_timeout_s: int = 300
    cleanup_on_start: bool = False
    _ray: "subprocess.Popen[bytes] | None" = field(default=None, init=False, repr=False)
    _step: SlurmStep | None = field(default=None, init=False, repr=False)

    def start(self) -> None:
        """Bring up the cluster. Returns on the head only; on another node the process ends here."""
        if os.environ.get("RAY_ADDRESS"):
            return
        step = self._step = SlurmStep.from_environment()
        if step is None:
            raise ConfigError(
                "SlurmRayClient: expected to be started by srun in a Slurm job (SLURM_JOB_ID); RayClient starts a "
                "cluster on one machine, and `gristmill slurm` prints a job script"
            )
        if self.cleanup_on_start:
            subprocess.run([_ray_program(), "stop", "--force"], capture_output=True, check=False)
        if step.node == 0:
            self._start_head(step)
        else:
            sys.exit(self._work(step))

    def stop(self) -> None:
        """End the cluster that was started here."""
        if self._step is not None:
            self._step.address_file.unlink(missing_ok=True)
        if self._ray is not None:
            os.environ.pop("RAY_ADDRESS", None)
            _end(self._ray)
            self._ray = None

    def __enter__(self) -> "SlurmRayClient":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # The head

    def _start_head(self, step: SlurmStep) -> None:
        host = _own_address()
        port = _free_port(host, self.ray_port)
        if "RAY_AUTH_MODE" not in os.environ:
            _use_token(secrets.token_hex(32))
        address = f"{host}:{port}"
        dashboard = str(self.include_dashboard).lower()
        self._ray = self._launch(
            step, "--head", f"--node-ip-address={host}", f"--port={port}", f"--include-dashboard={dashboard}"
        )
        try:
            self._wait_for_nodes(step, address)
        except BaseException:
            self.stop()
            raise
        os.environ["RAY_ADDRESS"] = address

    def _wait_for_nodes(self, step: SlurmStep, address: str) -> None:
        """Tell the others where the head is, and wait until all have come."""
        ray = require("ray", extra="ray")
        deadline = time.monotonic() + self.worker_connect_timeout_s
        host, _, port = address.rpartition(":")
        while not _answers(host, int(port)):
            self._check_alive("the head of a Ray cluster")
            _check_time(deadline, f"SlurmRayClient: expected Ray to answer at {address}; it does not")
            time.sleep(LOOK_S)
        _write_address(step.address_file, address)
        ray.init(address=address, log_to_driver=False, logging_level="error")
        try:
            while len(here := [node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]]) < step.num_nodes:
                self._check_alive("the head of a Ray cluster")
                missing = sorted(set(step.host_names()) - set(here))
                _check_time(
                    deadline,
                    f"SlurmRayClient: expected {step.num_nodes} nodes within {self.worker_connect_timeout_s} s; "
                    f"got {len(here)}, without {', '.join(missing)}. Is {step.shared} on storage all of them see?",
                )
                time.sleep(LOOK_S)
        finally:
            ray.shutdown()

    def _check_alive(self, what: str) -> None:
        if self._ray is not None and self._ray.poll() is not None:
            raise RunFailed(f"SlurmRayClient: expected {what} here; `ray start` ended with {self._ray.returncode}")

    # The others

    def _work(self, step: SlurmStep) -> int:
        """Lend this node to the head until that is done; return what to exit with."""
        deadline = time.monotonic() + self.worker_connect_timeout_s
        while not (lines := _read_lines(step.address_file)):
            _check_time(
                deadline,
                f"SlurmRayClient: expected the head's address in {step.address_file} within "
                f"{self.worker_connect_timeout_s} s; there is none. RAY_PORT_BROADCAST_DIR names a directory all see",
            )
            time.sleep(LOOK_S)
        address, *token = lines
        if token:
            _use_token(token[0])
        ray = self._launch(step, f"--address={address}")
        while ray.poll() is None and step.address_file.exists():
            time.sleep(LOOK_S)
        done = not step.address_file.exists()
        _end(ray)
        return 0 if done else ray.returncode or 1  # a node that ends before the head is lost, not done

    def _launch(self, step: SlurmStep, *options: str) -> "subprocess.Popen[bytes]":
        words = [_ray_program(), "start", "--block", "--disable-usage-stats", *options]
        given = {
            "num-cpus": self.num_cpus if self.num_cpus is not None else step.cpus,
            "num-gpus": self.num_gpus if self.num_gpus is not None else step.gpus,
            "object-store-memory": self.object_store_memory,
        }
        words += [f"--{name}={value}" for name, value in given.items() if value is not None]
        if "--head" in options:  # the other nodes are told by the head
            words.append(f"--temp-dir={self.ray_temp_dir or _own_directory()}")
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)


def _own_directory() -> str:
    return f"{tempfile.gettempdir()}/ray-{getpass.getuser()}"


def _ray_program() -> str:
    beside = Path(sys.executable).with_name("ray")
    found = str(beside) if beside.exists() else shutil.which("ray")
    if found is None:
        raise MissingDependency(
            "ray: expected to be installed; it is not. Install it with: pip install 'gristmill[ray]'"
        )
    return found


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _free_port(host: str, wanted: int) -> int:
    for port in (wanted, 0):
        with socket.socket() as sock:
            try:
                sock.bind((host, port))
            except OSError:
                continue
            return int(sock.getsockname()[1])
    raise RunFailed(f"SlurmRayClient: expected a free port on {host}; there is none")


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=LOOK_S).close()
    except OSError:
        return False
    return True


def _use_token(token: str) -> None:
    """Speak to the cluster, and let it be spoken to, with this token: this process and those it starts."""
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN"] = token
    if "ray" in sys.modules:  # it has read the environment already
        raylet: Any = importlib.import_module("ray._raylet")  # as its own `ray.init` does; there is no public way
        raylet.Config.initialize("")


def _write_address(path: Path, address: str) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.touch(mode=0o600)
    temporary.write_text("\n".join([address, os.environ.get("RAY_AUTH_TOKEN", "")]).strip())
    temporary.replace(path)  # nobody reads half of it


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except FileNotFoundError:
        return []


def _check_time(deadline: float, message: str) -> None:
    if time.monotonic() > deadline:
        raise RunFailed(message)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Let Ray end by itself, which takes its children along; kill it if it does not."""
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
