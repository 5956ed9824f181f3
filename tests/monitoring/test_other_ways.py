"""The other ways to Prometheus: a gateway that is given the end, and servers started from Python."""

import json
import socket

import pytest
from tests.monitoring.servers import fetch, started, wait_for
from tests.run_snapshots import run_snapshot, with_state

from gristmill.errors import ConfigError, MissingDependency

pytestmark = [pytest.mark.heavy, pytest.mark.slow]


def test_a_gateway_holds_the_end_of_the_latest_run_of_a_plan_and_nothing_that_was_true_only_while_it_ran(tmp_path):
    from gristmill.metrics.catalog import CATALOG
    from gristmill.metrics.exporter import Exporter, MetricsOptions

    with started(["prometheus-pushgateway"], tmp_path / "gateway.log") as gateway:
        for read, name in ((1, "with / and ä"), (2, "with / and ä"), (3, "other")):
            with Exporter(MetricsOptions(push=gateway), say=pytest.fail) as metrics:
                metrics(with_state(run_snapshot(read=read, name=name), "running"))
                metrics(with_state(run_snapshot(read=read, name=name), "finished"))
        groups = json.loads(fetch(f"{gateway}/api/v1/metrics"))["data"]

    assert {group["labels"]["pipeline"] for group in groups} == {"with / and ä", "other"}
    assert len(groups) == 2
    lasting = {metric.name for metric in CATALOG if metric.lasts}
    for group in groups:
        pushed = {name for name in group if name.startswith("gristmill_")}
        assert pushed == lasting
        value = group["gristmill_read_documents_total"]["metrics"][0]["value"]
        assert float(value) == {"other": 3, "with / and ä": 2}[group["labels"]["pipeline"]]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_prometheus_is_started_from_python_and_finds_a_run(tmp_path):
    from gristmill.metrics.exporter import Exporter, MetricsOptions
    from gristmill.metrics.start_prometheus_grafana import start_prometheus_grafana

    monitoring = start_prometheus_grafana(free_port(), None, tmp_path)
    try:
        with Exporter(MetricsOptions(discovery=monitoring.targets, linger_s=0), say=lambda _: None) as metrics:
            metrics(run_snapshot())
            found = f"{monitoring.prometheus_url}/api/v1/query?query=gristmill_run_info"
            wait_for(lambda: json.loads(fetch(found))["data"]["result"], "the run")
        port = int(monitoring.prometheus_url.rpartition(":")[2])
        with pytest.raises(ConfigError, match="expected a free port on this machine"):
            start_prometheus_grafana(port, None, tmp_path / "second")
    finally:
        monitoring.stop()
    assert monitoring.processes["prometheus"].returncode == 0


def test_a_program_that_is_missing_is_named_and_nothing_is_started(tmp_path, monkeypatch):
    from gristmill.metrics.start_prometheus_grafana import start_prometheus_grafana

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependency, match=r"prometheus \(Debian: apt-get install prometheus.*; grafana"):
        start_prometheus_grafana(free_port(), free_port(), tmp_path / "files")
    assert list(tmp_path.iterdir()) == []
