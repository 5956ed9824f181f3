"""`RayClient`: a Ray head node on this machine for the duration of a program, or a cluster that was started elsewhere.

    with RayClient():
        pipeline.run()          # on Ray, because RAY_ADDRESS is set now

Only what this program started is stopped by it. Ray's own command starts the node, so it is what `ray start` would be.
"""

import atexit
import contextlib
import importlib
import itertools
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from gristmill.errors import ConfigError, RunFailed, require

RAY_PORT, DASHBOARD_PORT, CLIENT_PORT, METRICS_PORT = 6379, 8265, 10001, 8080
TEMP_DIR = "/tmp/ray"  # not `tempfile.gettempdir()`: sockets go below it, and the path of a socket is short
TRIES = 200  # ports looked at beyond a default one
WORKER_PORTS = range(10002, 20000)  # Ray gives these to its workers, and does not start if another part is given one
START_S = 120.0
SETTLE_S = 30.0  # after its first answer, if it does not say that it has started
STOP_S = 15.0
SOCKET = "/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store"  # below the temporary directory
LONGEST_DIR = (103 if sys.platform == "darwin" else 107) - len(SOCKET)  # how long the path of a socket may be
STARTED = "Ray runtime started"
SHOWN_LINES = 8  # of what Ray said when it did not start


@dataclass
class RayClient:
    """Starts Ray on this machine, unless RAY_ADDRESS says that there is one already; then that one is used.

    A default port that is taken is replaced by the next free one; a port you choose has to be free. The temporary
    directory is one of your own where another user's is in the way. `enable_object_spilling` lets Ray write objects to
    disk when its store is full, which RayActorPoolExecutor never fills. `ray_client_server_port` is for `ray://`
    connections, which gristmill does not use.
    """

    ray_port: int = RAY_PORT
    ray_dashboard_port: int = DASHBOARD_PORT
    ray_client_server_port: int = CLIENT_PORT
    ray_temp_dir: str = TEMP_DIR
    include_dashboard: bool = True
    ray_metrics_port: int = METRICS_PORT
    ray_dashboard_host: str = "127.0.0.1"
    num_gpus: int | None = None
    num_cpus: int | None = None
    enable_object_spilling: bool = False
    ray_stdouterr_capture_file: str | None = None
    object_store_memory: int | None = None
    ray_process: "subprocess.Popen[bytes] | None" = field(init=False, default=None)
    _set_mode: bool = field(init=False, default=False, repr=False)

    def __post_init__(self) -> None:
        if self.ray_stdouterr_capture_file and Path(self.ray_stdouterr_capture_file).exists():
            raise ConfigError(
                f"RayClient: expected a ray_stdouterr_capture_file that does not exist yet; "
                f"got {self.ray_stdouterr_capture_file!r}"
            )

    def start(self) -> None:
        """Start a head node and point RAY_ADDRESS at it; nothing is done if RAY_ADDRESS is set."""
        if os.environ.get("RAY_ADDRESS") or self.ray_process is not None:
            return
        require("ray", extra="ray")
        self._choose_ports()
        self.ray_temp_dir = own_temp_dir(self.ray_temp_dir)
        # Ray's command asks for a token if the user has one, as everyone has who ever started Ray from a program. A
        # driver that is given an address does not use it, and would be refused: so both are told.
        self._set_mode = "RAY_AUTH_MODE" not in os.environ and _has_token()
        if self._set_mode:
            use_auth_mode("token")
        address = f"{_host()}:{self.ray_port}"
        with self._capture() as output:
            self.ray_process = subprocess.Popen(
                self._command(),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in the terminal is this program's to handle
                env={"RAY_USAGE_STATS_ENABLED": "0", **os.environ},
            )
            try:
                self._wait(address, output)
            except BaseException:
                self.stop()
                raise
        os.environ["RAY_ADDRESS"] = address
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stop the node this object has started; one that was started elsewhere is left alone."""
        process, self.ray_process = self.ray_process, None
        if process is None:
            return
        self._disconnect()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
        os.environ.pop("RAY_ADDRESS", None)
        if self._set_mode:
            use_auth_mode(None)
        atexit.unregister(self.stop)

    def __enter__(self) -> "RayClient":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _choose_ports(self) -> None:
        usual = {
            "ray_port": RAY_PORT,
            "ray_dashboard_port": DASHBOARD_PORT,
            "ray_client_server_port": CLIENT_PORT,
            "ray_metrics_port": METRICS_PORT,
        }
        taken: set[int] = set()
        for name, default in usual.items():
            wanted = getattr(self, name)
            port = free_port(wanted, name=name, others=wanted == default, taken=taken)
            taken.add(port)
            setattr(self, name, port)

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"]
        command += [f"--node-ip-address={_host()}", f"--port={self.ray_port}", f"--temp-dir={self.ray_temp_dir}"]
        command += [f"--metrics-export-port={self.ray_metrics_port}"]
        command += [f"--ray-client-server-port={self.ray_client_server_port}"]
        command += [f"--dashboard-host={self.ray_dashboard_host}", f"--dashboard-port={self.ray_dashboard_port}"]
        # Without this Ray starts a dashboard if what it needs is installed, and none if not.
        command += [] if self.include_dashboard else ["--include-dashboard=false"]
        given = {
            "num-cpus": self.num_cpus,
            "num-gpus": self.num_gpus,
            "object-store-memory": self.object_store_memory,
        }
        command += [f"--{name}={value}" for name, value in given.items() if value is not None]
        command += (
            [] if self.enable_object_spilling else ['--system-config={"automatic_object_spilling_enabled":false}']
        )
        return command

    def _capture(self) -> IO[bytes]:
        if self.ray_stdouterr_capture_file:
            return Path(self.ray_stdouterr_capture_file).open("w+b")
        return tempfile.TemporaryFile()

    def _wait(self, address: str, output: IO[bytes]) -> None:
        """Return when the node answers; raise with Ray's own words if it ends or does not answer in time."""
        host, _, port = address.rpartition(":")
        deadline = time.monotonic() + START_S
        answered_at = math.inf
        while self.ray_process is not None and self.ray_process.poll() is None:
            now = time.monotonic()
            with contextlib.suppress(OSError):
                socket.create_connection((host, int(port)), timeout=1.0).close()
                answered_at = min(answered_at, now)
            # Its first process answers before its last has started; the words may change with the next release.
            if answered_at < math.inf and (_has_started(output) or now - answered_at > SETTLE_S):
                return
            if now > deadline:
                raise RunFailed(f"RayClient: expected Ray to answer at {address} in {START_S:.0f} s; {_said(output)}")
            time.sleep(0.1)
        raise RunFailed(f"RayClient: expected Ray to start at {address}; it has ended. {_said(output)}")

    @staticmethod
    def _disconnect() -> None:
        """Take from the cluster what the program may still want, and leave it.

        A driver that stays connected to a node that is stopped would try to reach it, and say so, for a minute.
        """
        ray = sys.modules.get("ray")
        if ray is None or not ray.is_initialized():
            return
        from gristmill.runs.books import LazyTasks
        from gristmill.worker.wire import BlockLost

        with contextlib.suppress(BlockLost, ray.exceptions.RayError):  # lost: a later look at it says so
            LazyTasks.fetch_all()
        ray.shutdown()


def use_auth_mode(mode: str | None) -> None:
    """Say whether clusters ask for a token, or leave it to Ray: for this process and those it starts."""
    if mode is None:
        os.environ.pop("RAY_AUTH_MODE", None)
    else:
        os.environ["RAY_AUTH_MODE"] = mode
    if "ray" in sys.modules:  # it has read the environment already
        raylet: Any = importlib.import_module("ray._raylet")  # as its own `ray.init` does; there is no public way
        raylet.Config.initialize("")


def _has_token() -> bool:
    given = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    return bool(given) or (Path.home() / ".ray" / "auth_token").is_file()


def free_port(wanted: int, *, name: str, others: bool, taken: "set[int] | frozenset[int]" = frozenset()) -> int:
    """Return a port nothing listens on: the wanted one or, if `others` will do, one of the next."""
    if wanted in WORKER_PORTS and not others:
        raise ConfigError(
            f"RayClient: expected {name} outside of {WORKER_PORTS[0]} to {WORKER_PORTS[-1]}, which Ray keeps for its "
            f"workers; got {wanted}"
        )
    outside = (port for port in range(wanted, 1 << 16) if port not in WORKER_PORTS)
    for port in itertools.islice(outside, TRIES if others else 1):
        if port not in taken and _is_free(port):
            return port
    if others:
        raise ConfigError(f"RayClient: expected a free port for {name} from {wanted} on; got {TRIES} that are in use")
    raise ConfigError(
        f"RayClient: expected {name} to be free; got {wanted}, which another program listens on. "
        "Leave it out to have a free one found"
    )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
        except OSError:
            return False
    return True


def own_temp_dir(wanted: str) -> str:
    """Return the directory, or one beside it with the user's number if the default one belongs to another user.

    RAY_TMPDIR moves the default one, as it does for Ray itself.
    """
    if wanted == TEMP_DIR and os.environ.get("RAY_TMPDIR"):
        wanted = str(Path(os.environ["RAY_TMPDIR"]) / "ray")
    if len(wanted) > LONGEST_DIR:
        raise ConfigError(
            f"RayClient: expected a ray_temp_dir of at most {LONGEST_DIR} characters, because sockets go below it; "
            f"got {len(wanted)}: {wanted!r}"
        )
    path = Path(wanted)
    if not path.exists() or os.access(path, os.W_OK | os.X_OK):
        return wanted
    if wanted != TEMP_DIR:
        raise ConfigError(f"RayClient: expected a ray_temp_dir you can write to; got {wanted!r}")
    return f"{wanted}-{os.getuid()}"


def _host() -> str:
    """The address other machines reach this one by, or the loopback where it has none."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _has_started(output: IO[bytes]) -> bool:
    return STARTED in os.pread(output.fileno(), 1 << 16, 0).decode(errors="replace")


def _said(output: IO[bytes]) -> str:
    # By position: the file's own position is shared with the process that writes.
    text = os.pread(output.fileno(), 1 << 16, 0).decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "Ray said:\n  " + "\n  ".join(lines[-SHOWN_LINES:]) if lines else "Ray said nothing"
