"""`SlurmRayClient`: one Ray cluster over the nodes of a Slurm job.

The same program is started on every node (`srun`, one process a node). On the first, `start` returns when all others
have joined; on the others it does not return: they work until the first is done, and end.

    node 0   ray start --head ──▶ address file ──▶ waits for all nodes ──▶ returns, RAY_ADDRESS is set
    node k   waits for the address file ──▶ ray start --address ──▶ ends when the head is gone

Ray runs as a child of this process, so it ends with the job and nothing else of the user's is touched. The cluster lets
in whoever knows a token made for this job; it is in the address file, which only the user can read. With RAY_AUTH_MODE
set, the user's own way is kept.
"""

import os
import secrets
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from gristmill.core.ray_client import RayClient, use_auth_mode
from gristmill.core.slurm_environment import SlurmStep
from gristmill.errors import RunFailed, require

LOOK_S = 0.5  # between two looks at the shared directory or the cluster
END_S = 30.0  # for Ray to end
RAY = (sys.executable, "-m", "ray.scripts.scripts")  # the command `ray`, of this Python


@dataclass
class SlurmRayClient(RayClient):
    """A RayClient whose cluster is all nodes of the job; with RAY_ADDRESS set, the one it names, which is left alone.

    Outside of a Slurm job the cluster is this machine.

    `num_cpus`, `num_gpus`       of each node, as Slurm says if not given
    `worker_connect_timeout_s`   how long nodes may take to find each other
    `cleanup_on_start`           end every Ray of this user on the node first. Off, unlike elsewhere: on a shared node
                                 that would end another job's
    """

    worker_connect_timeout_s: int = 300
    cleanup_on_start: bool = False
    _step: SlurmStep | None = field(default=None, init=False, repr=False)

    def start(self) -> None:
        """Bring up the cluster. Returns on the head only; on another node the process ends here."""
        if os.environ.get("RAY_ADDRESS"):
            return
        step = self._step = SlurmStep.from_environment()
        if step is None:  # a script that is tried on a laptop
            where = "SlurmRayClient: there is no Slurm job here (SLURM_JOB_ID), so the cluster is this machine alone"
            warnings.warn(f"{where}; `gristmill slurm` prints a job script", UserWarning, stacklevel=2)
            super().start()
            return
        self.num_cpus = step.cpus if self.num_cpus is None else self.num_cpus
        self.num_gpus = step.gpus if self.num_gpus is None else self.num_gpus
        if self.cleanup_on_start:
            subprocess.run([*RAY, "stop", "--force"], capture_output=True, check=False)
        if step.node == 0:
            self._start_head(step)
        else:
            sys.exit(self._work(step))

    def stop(self) -> None:
        """End the cluster that was started here; the other nodes see that the address file is gone."""
        if self._step is not None and self._step.node == 0:
            self._step.address_file.unlink(missing_ok=True)
        super().stop()

    # The head

    def _start_head(self, step: SlurmStep) -> None:
        if "RAY_AUTH_MODE" not in os.environ:
            _use_token(secrets.token_hex(32))
        super().start()
        try:
            _write_address(step.address_file, os.environ["RAY_ADDRESS"])
            self._wait_for_nodes(step)
        except BaseException:
            self.stop()
            raise

    def _wait_for_nodes(self, step: SlurmStep) -> None:
        ray = require("ray", extra="ray")
        deadline = time.monotonic() + self.worker_connect_timeout_s
        address = os.environ["RAY_ADDRESS"]
        while not ray.is_initialized():
            try:
                ray.init(address=address, log_to_driver=False, logging_level="error")
            except (ConnectionError, RuntimeError) as error:  # a node that has just been started may be too busy
                _check_time(deadline, f"SlurmRayClient: expected Ray to answer at {address}; got: {error}")
                ray.shutdown()
        try:
            while len(here := [node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]]) < step.num_nodes:
                missing = sorted(set(step.host_names()) - set(here))
                _check_time(
                    deadline,
                    f"SlurmRayClient: expected {step.num_nodes} nodes within {self.worker_connect_timeout_s} s; "
                    f"got {len(here)}, without {', '.join(missing)}. Is {step.shared} on storage all of them see?",
                )
                time.sleep(LOOK_S)
        finally:
            ray.shutdown()

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
        ray = self._join(address)
        while ray.poll() is None and step.address_file.exists():
            time.sleep(LOOK_S)
        done = not step.address_file.exists()
        _end(ray)
        return 0 if done else ray.returncode or 1  # a node that ends before the head is lost, not done

    def _join(self, address: str) -> "subprocess.Popen[bytes]":
        given = {
            "num-cpus": self.num_cpus,
            "num-gpus": self.num_gpus,
            "object-store-memory": self.object_store_memory,
        }
        options = [f"--{name}={value}" for name, value in given.items() if value is not None]
        command = [*RAY, "start", "--block", "--disable-usage-stats", f"--address={address}", *options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def _use_token(token: str) -> None:
    """Speak to the cluster, and let it be spoken to, with this token: this process and those it starts."""
    os.environ["RAY_AUTH_TOKEN"] = token
    use_auth_mode("token")


def _write_address(path: Path, address: str) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.touch(mode=0o600)
    temporary.write_text("\n".join([address, os.environ.get("RAY_AUTH_TOKEN", "")]).strip())
    temporary.replace(path)  # so that no node reads half of it


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
