"""`start_prometheus_grafana`: both servers on this machine, set up to show runs of gristmill.

    python -m gristmill.metrics.start_prometheus_grafana --prometheus_web_port 9090 --grafana_web_port 3000

It starts programs that are installed and downloads nothing. They go on after the program that started them has ended;
`Monitoring.stop`, or `kill` with the numbers that are printed, ends them.
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from gristmill.errors import ConfigError, MachineError, MissingDependency
from gristmill.metrics.monitoring_files import (
    GRAFANA_PORT,
    LOOPBACK,
    PROMETHEUS_PORT,
    MonitoringOptions,
    write_monitoring,
)

__all__ = ["Monitoring", "start_prometheus_grafana"]

READY_S = 60.0  # until a server answers; a disk may be slow
LOOK_S = 0.1
GRAFANA_HOMES = (
    "/usr/share/grafana",
    "/opt/homebrew/opt/grafana/share/grafana",
    "/usr/local/opt/grafana/share/grafana",
)
HOW_TO_INSTALL = {
    "prometheus": "prometheus (Debian: apt-get install prometheus; macOS: brew install prometheus)",
    "grafana": "grafana (see grafana.com/docs on installation; macOS: brew install grafana)",
}


@dataclass(frozen=True)
class Monitoring:
    """The servers that were started: their files, addresses and processes."""

    directory: Path
    prometheus_url: str
    grafana_url: str | None
    processes: dict[str, subprocess.Popen[bytes]]

    @property
    def targets(self) -> Path:
        """What `--metrics-sd`, or `MetricsOptions(discovery=...)`, has to be given for a run to be found."""
        return self.directory / "targets"

    def stop(self) -> None:
        """End both, and wait until they have written what they hold."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait()


def start_prometheus_grafana(
    prometheus_web_port: int = PROMETHEUS_PORT,
    grafana_web_port: int | None = GRAFANA_PORT,
    metrics_dir: str | Path | None = None,
) -> Monitoring:
    """Start Prometheus and Grafana with their files in `metrics_dir`; without a port, Grafana is left out.

    Raises MissingDependency if a program is not on PATH, and ConfigError if a port is taken; then none is started.
    """
    directory = Path(metrics_dir) if metrics_dir is not None else _own_directory()
    programs = _find(["prometheus"] if grafana_web_port is None else ["prometheus", "grafana"])
    for name, port in (("prometheus_web_port", prometheus_web_port), ("grafana_web_port", grafana_web_port)):
        if port is not None:
            _check_free(name, port)
    options = MonitoringOptions(prometheus_web_port, grafana_web_port or GRAFANA_PORT)
    write_monitoring(directory, options, force=True)
    directory = directory.absolute()
    started: dict[str, subprocess.Popen[bytes]] = {}
    addresses = {
        "prometheus": f"http://{LOOPBACK}:{prometheus_web_port}",
        "grafana": f"http://{LOOPBACK}:{grafana_web_port}",
    }
    try:
        started["prometheus"] = _start_prometheus(programs["prometheus"], directory, prometheus_web_port)
        _wait_until_ready("prometheus", started["prometheus"], f"{addresses['prometheus']}/-/ready", directory)
        if grafana_web_port is not None:
            started["grafana"] = _start_grafana(programs["grafana"], directory)
            _wait_until_ready("grafana", started["grafana"], f"{addresses['grafana']}/api/health", directory)
    except BaseException:
        for process in started.values():
            process.kill()
            process.wait()
        raise
    return Monitoring(directory, addresses["prometheus"], addresses["grafana"] if grafana_web_port else None, started)


def _own_directory() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "gristmill" / "monitoring"


def _find(names: list[str]) -> dict[str, str]:
    found = {
        name: shutil.which(name) or (shutil.which("grafana-server") if name == "grafana" else None) for name in names
    }
    missing = [HOW_TO_INSTALL[name] for name, path in found.items() if path is None]
    if missing:
        raise MissingDependency(
            f"start_prometheus_grafana: expected these programs on PATH; got none: {'; '.join(missing)}. Nothing was "
            "started, and nothing is downloaded. `gristmill monitoring init DIR` writes a compose file for containers"
        )
    return {name: path for name, path in found.items() if path is not None}


def _check_free(name: str, port: int) -> None:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just ended does not block it
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise ConfigError(f"{name}: expected a free port on this machine; got {port}: {error}") from error


def _start_prometheus(program: str, directory: Path, port: int) -> subprocess.Popen[bytes]:
    return _start(
        "prometheus",
        directory,
        [
            program,
            f"--config.file={directory}/prometheus.yml",
            f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address={LOOPBACK}:{port}",
        ],
    )


def _start_grafana(program: str, directory: Path) -> subprocess.Popen[bytes]:
    homes = (*GRAFANA_HOMES, str(Path(program).resolve().parents[1]))
    home = next((home for home in homes if Path(home, "conf", "defaults.ini").is_file()), homes[-1])
    command = [program] if Path(program).name == "grafana-server" else [program, "server"]
    return _start("grafana", directory, [*command, "--homepath", home, "--config", f"{directory}/grafana/grafana.ini"])


def _start(name: str, directory: Path, command: list[str]) -> subprocess.Popen[bytes]:
    with _log(name, directory).open("wb") as log:
        # In a session of its own: Ctrl-C in the terminal is for the run.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory, start_new_session=True
        )


def _log(name: str, directory: Path) -> Path:
    return directory / f"{name}.log"


def _wait_until_ready(name: str, process: subprocess.Popen[bytes], url: str, directory: Path) -> None:
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # our own machine is behind no proxy
    end = time.monotonic() + READY_S
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), ask(url, timeout=READY_S):
            return
        time.sleep(LOOK_S)
    last = _log(name, directory).read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
    raise MachineError(f"{name}: expected it to answer at {url}; it did not, and last said: {' | '.join(last)}")


def main(arguments: list[str] | None = None) -> None:
    """Start both from the command line, with the options users know."""
    parser = argparse.ArgumentParser(description="Start Prometheus and Grafana, which must be installed.")
    parser.add_argument("--prometheus_web_port", type=int, default=PROMETHEUS_PORT)
    parser.add_argument("--grafana_web_port", type=int, default=GRAFANA_PORT)
    parser.add_argument("--metrics_dir", default=None, help="where their files go")
    parser.add_argument("--yes", action="store_true", help="has no effect: nothing is downloaded or asked")
    given = parser.parse_args(arguments)
    try:
        started = start_prometheus_grafana(given.prometheus_web_port, given.grafana_web_port, given.metrics_dir)
    except (ConfigError, MachineError, MissingDependency) as error:
        sys.exit(f"gristmill: {error}")
    print(f"Prometheus  {started.prometheus_url}\nGrafana     {started.grafana_url} (admin, admin; asks for a new one)")
    print(f"Show a run  gristmill run ... --metrics-sd {started.targets}")
    print(f"End both    kill {' '.join(str(process.pid) for process in started.processes.values())}")


if __name__ == "__main__":
    main()
