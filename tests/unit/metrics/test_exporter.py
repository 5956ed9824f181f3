"""An exporter does what it was asked to and nothing else; what fails is said before the run, or does not end it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest
from tests.run_snapshots import run_snapshot, with_state

from gristmill.errors import ConfigError
from gristmill.metrics.exporter import Exporter
from gristmill.metrics.metrics_options import MetricsOptions

FINISHED = with_state(run_snapshot(), "finished")


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


@pytest.fixture
def said():
    return []


@pytest.fixture
def exporter(said):
    def make(**options):
        return Exporter(MetricsOptions(**options), say=said.append)

    return make


def url_of(said):
    return said[0].removeprefix("metrics at ")


def test_the_latest_snapshot_can_be_fetched_while_a_run_lasts_and_not_after(exporter, said):
    with exporter(port=0) as metrics:
        assert "gristmill" not in fetch(url_of(said))
        metrics(run_snapshot(read=7))
        assert "gristmill_read_documents_total{" in fetch(url_of(said))
        assert fetch(url_of(said).removesuffix("metrics")).startswith("gristmill: metrics for Prometheus")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(url_of(said) + "/../../etc/passwd")
        threading.Thread(target=fetch_until_end, args=(url_of(said),)).start()
    with pytest.raises(urllib.error.URLError):
        fetch(url_of(said))


def fetch_until_end(url):
    """Do what a server does that scrapes all the time."""
    try:
        while True:
            fetch(url)
    except OSError:
        pass


@pytest.mark.slow
def test_the_end_waits_until_somebody_who_asked_before_has_fetched_it():
    said, seen = [], []

    def say(text):
        said.append(text)
        if "waiting" in text:  # which is said a second after the end
            scraper.start()

    scraper = threading.Thread(target=lambda: seen.append(fetch(url_of(said))))
    with Exporter(MetricsOptions(port=0, linger_s=600), say=say) as metrics:
        metrics(run_snapshot())
        fetch(url_of(said))
        metrics(FINISHED)
    scraper.join()

    assert 'state="finished"} 1.0' in seen[-1]


def test_nobody_is_waited_for_who_never_asked(exporter):
    with exporter(port=0, linger_s=600) as metrics:
        metrics(FINISHED)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_ends_the_waiting_and_leaves_no_target_file(tmp_path, number):
    code = (
        "import signal, sys, urllib.request\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background\n"
        "from gristmill.metrics.exporter import Exporter\n"
        "from gristmill.metrics.metrics_options import MetricsOptions\n"
        "from tests.run_snapshots import run_snapshot, with_state\n"
        "said = lambda text: print(text, flush=True)\n"
        "with Exporter(MetricsOptions(discovery=sys.argv[1], linger_s=600), say=said) as metrics:\n"
        "    metrics(run_snapshot())\n"
        "    urllib.request.urlopen('http://' + metrics._endpoint.target + '/metrics').read()\n"
        "    metrics(with_state(run_snapshot(), 'finished'))\n"
        "print('left', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        lines = iter(process.stdout.readline, "")
        assert any("waiting up to 600 s" in line for line in lines)
        process.send_signal(number)
        assert [line.strip() for line in lines] == ["left"]
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_target_file_names_the_endpoint_while_it_is_there(exporter, said, tmp_path):
    with exporter(discovery=tmp_path / "targets", linger_s=0) as metrics:
        (path,) = (tmp_path / "targets").iterdir()
        ((target,),) = [group["targets"] for group in json.loads(path.read_text())]
        assert fetch(f"http://{target}/metrics") == ""
        assert path.suffix == ".json"
        metrics(FINISHED)
    assert list((tmp_path / "targets").iterdir()) == []


def test_a_run_that_raises_is_told_as_failed_and_leaves_no_target_file(exporter, tmp_path):
    file = tmp_path / "run.prom"

    def fail():
        with exporter(file=file, discovery=tmp_path / "targets") as metrics:
            metrics(run_snapshot())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert 'state="failed"} 1.0' in file.read_text()
    assert list((tmp_path / "targets").iterdir()) == []


def test_a_file_holds_the_end_and_can_be_read_by_others(exporter, tmp_path):
    file = tmp_path / "run.prom"
    with exporter(file=file) as metrics:
        assert file.read_text() == ""
        metrics(FINISHED)

    assert "gristmill_written_documents_total{" in file.read_text()
    assert "gristmill_stage_queued_tasks" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["run.prom"]


def test_a_port_that_is_taken_is_said_before_the_run(exporter):
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConfigError, match="expected a free port on this machine"),
    ):
        exporter(port=taken.getsockname()[1]).__enter__()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"file": "{there}/no/such/dir/x.prom"}, "--metrics-file: expected a file that can be written"),
        ({"discovery": "{there}/file"}, "--metrics-sd: expected a directory that can be written to"),
        ({"port": 0, "host": "256.0.0.1"}, "--metrics-port: expected a free port on this machine"),
    ],
)
def test_what_cannot_work_is_said_before_the_run_and_leaves_nothing(exporter, said, tmp_path, options, expected):
    (tmp_path / "file").touch()
    options = {key: value.format(there=tmp_path) if isinstance(value, str) else value for key, value in options.items()}
    with pytest.raises(ConfigError, match=expected):
        exporter(**options).__enter__()

    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    if said:  # the endpoint was open by then
        with pytest.raises(urllib.error.URLError):
            fetch(url_of(said))


@pytest.mark.parametrize(
    "options", [{"port": 70_000}, {"port": -1}, {"linger_s": -1}, {"push": "gateway:9091"}, {"push": "http://h:port"}]
)
def test_options_without_sense_are_refused(options):
    with pytest.raises(ConfigError, match=r"--metrics-.*: expected"):
        MetricsOptions(**options)


def test_a_gateway_out_of_reach_is_said_twice_and_ends_nothing(exporter, said):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with exporter(push=f"http://user:hunter22@127.0.0.1:{port}") as metrics:
        metrics(FINISHED)

    assert ["does not answer now" in said[0], "did not accept the metrics" in said[1]] == [True, True]
    assert "hunter22" not in "".join(said)


def test_a_disk_that_fills_up_is_said_once_and_ends_nothing(exporter, said, tmp_path):
    file = tmp_path / "metrics" / "run.prom"
    file.parent.mkdir()
    with exporter(file=file) as metrics:
        file.unlink()
        file.parent.rmdir()
        metrics(FINISHED)

    assert len(said) == 1
    assert "could not be written, the run goes on" in said[0]


def test_nothing_is_asked_by_default():
    assert not MetricsOptions()
    assert not MetricsOptions(host="0.0.0.0", linger_s=3)
    assert all(MetricsOptions(**{name: 0}) for name in ("port", "discovery", "file"))


def test_the_observer_behind_it_sees_every_snapshot_and_says_how_often(said):
    class Every:
        snapshot_s = 0.1
        seen = ()

        def __call__(self, snapshot):
            self.seen = (*self.seen, snapshot)

    behind = Every()
    with Exporter(MetricsOptions(port=0), then=behind, say=said.append) as metrics:
        metrics(FINISHED)
        assert metrics.snapshot_s == 0.1

    assert behind.seen == (FINISHED,)


def test_a_client_that_says_nothing_does_not_hold_up_the_end(exporter, said):
    with exporter(port=0) as metrics:
        host, port = url_of(said).removeprefix("http://").removesuffix("/metrics").split(":")
        silent = socket.create_connection((host, int(port)))
        metrics(FINISHED)
        assert fetch(url_of(said))
        threading.Thread(target=fetch_until_end, args=(url_of(said),)).start()
    silent.close()


@pytest.mark.slow
def test_a_process_that_exports_nothing_loads_nothing_for_it():
    code = "import sys, gristmill.cli.main; print([m for m in sys.modules if 'prometheus' in m or m == 'http.server'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)

    assert done.stdout.strip() == "[]"
