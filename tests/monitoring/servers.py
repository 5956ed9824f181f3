"""Real servers for tests: Prometheus and a Pushgateway, each on a free port of this machine, ended with the test."""

import contextlib
import json
import re
import select
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from gristmill.metrics.monitoring_files import MonitoringOptions, write_monitoring

PATIENCE_S = 240  # nothing takes so long; a machine that does something else as well may
LOOK_S = 0.05
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
LISTENING = re.compile(r'msg="Listening on" address=(\S+)')


def fetch(url):
    with _open(url, timeout=PATIENCE_S) as answer:
        return answer.read().decode()


def is_ready(url):
    """Whether a server answers questions: it listens before it has read what it had stored."""
    try:
        fetch(f"{url}/-/ready")
    except urllib.error.HTTPError:
        return False
    return True


def wait_for(look, what):
    """Return what `look` gives as soon as that is something."""
    end = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < end, f"expected {what} within {PATIENCE_S} s"
        select.select([], [], [], LOOK_S)
    return found


@contextlib.contextmanager
def started(command, log):
    """Start a server on port 0, and give its address when it has said on which port that is."""
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "--web.listen-address=127.0.0.1:0"], stdout=output, stderr=output)
    try:

        def address():
            assert process.poll() is None, log.read_text()
            return LISTENING.search(log.read_text())

        yield f"http://{wait_for(address, f'{command[0]} to listen')[1]}"
    finally:
        process.terminate()
        process.wait()


class PrometheusServer:
    """A server with the files of `monitoring init`, whose alerts take `factor` of their usual time."""

    def __init__(self, directory, url):
        self.directory = directory
        self.targets = directory / "targets"
        self.url = url

    @classmethod
    @contextlib.contextmanager
    def started(cls, directory, *, factor=1.0, interval_s=0.25, ray_dir="/nowhere"):
        write_monitoring(directory, MonitoringOptions(interval_s=interval_s, factor=factor, ray_dir=ray_dir))
        command = [
            *("prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data"),
            # An instant query finds a sample so far back, where a target has not been marked as gone.
            "--query.lookback-delta=5m",
        ]
        with started(command, directory / "prometheus.log") as url:
            wait_for(lambda: is_ready(url), "Prometheus to be ready")
            yield cls(directory, url)

    def ask(self, path, **parameters):
        answer = json.loads(fetch(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression):
        """Return labels and value of every series an expression gives now."""
        return [
            (sample["metric"], float(sample["value"][1])) for sample in self.ask("query", query=expression)["result"]
        ]

    def value(self, expression):
        """Return the one number an expression gives, or None."""
        found = self.query(expression)
        assert len(found) < 2, found
        return found[0][1] if found else None

    def firing(self, **labels):
        """Return the alerts that have fired since the server was started, with their labels."""
        chosen = ",".join(f'{name}="{value}"' for name, value in {"alertstate": "firing", **labels}.items())
        return [found for found, _ in self.query(f"count_over_time(ALERTS{{{chosen}}}[1h])")]

    def wait_for_evaluations(self, seconds):
        """Return when every rule was evaluated so many seconds after the latest evaluation there was."""

        def evaluated():
            return [
                # Nanoseconds are more than Python reads.
                time.strptime(group["lastEvaluation"][:19], "%Y-%m-%dT%H:%M:%S")
                for group in self.ask("rules")["groups"]
            ]

        before = max(map(time.mktime, evaluated()))
        wait_for(lambda: min(map(time.mktime, evaluated())) > before + seconds, f"rules evaluated {seconds} s later")
