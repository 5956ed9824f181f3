"""`monitoring init` writes a whole set-up, keeps what somebody changed, and lets nobody in from elsewhere."""

import json

import pytest
import yaml

from gristmill.errors import ConfigError
from gristmill.metrics.monitoring_files import MonitoringOptions, write_monitoring


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_everything_both_servers_need_is_written(tmp_path):
    written = write_monitoring(tmp_path, MonitoringOptions(19090, 13000, ("far", "near:1"), str(tmp_path)))

    assert {path.relative_to(tmp_path).as_posix() for path in written} == {
        "prometheus.yml",
        "rules/gristmill.yml",
        "compose.yaml",
        "grafana/grafana.ini",
        "grafana/provisioning/datasources/gristmill.yml",
        "grafana/provisioning/dashboards/gristmill.yml",
        *(f"grafana/dashboards/{name}.json" for name in ("run", "fleet", "resources")),
    }
    assert (tmp_path / "targets").is_dir()
    runs, ray = load(tmp_path / "prometheus.yml")["scrape_configs"]
    assert runs["static_configs"] == [{"targets": ["far:9095", "near:1"]}]
    assert ray["file_sd_configs"] == [{"files": [f"{tmp_path}/prom_metrics_service_discovery.json"]}]
    (source,) = load(tmp_path / "grafana/provisioning/datasources/gristmill.yml")["datasources"]
    assert source["url"] == "http://127.0.0.1:19090"
    (provider,) = load(tmp_path / "grafana/provisioning/dashboards/gristmill.yml")["providers"]
    assert provider["options"]["path"] == str(tmp_path / "grafana/dashboards")
    assert json.loads((tmp_path / "grafana/dashboards/run.json").read_text())["uid"] == "gristmill-run"


def test_both_servers_listen_on_this_machine_only_and_ask_who_it_is(tmp_path):
    write_monitoring(tmp_path, MonitoringOptions(19090, 13000))
    services = load(tmp_path / "compose.yaml")["services"]

    assert "--web.listen-address=127.0.0.1:19090" in services["prometheus"]["command"]
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert services["grafana"]["environment"]["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert "http_addr = 127.0.0.1\nhttp_port = 13000" in (tmp_path / "grafana/grafana.ini").read_text()


def test_a_second_call_changes_nothing_and_a_changed_file_is_kept_unless_forced(tmp_path):
    write_monitoring(tmp_path)
    write_monitoring(tmp_path)
    (tmp_path / "prometheus.yml").write_text("mine")
    with pytest.raises(ConfigError, match=r"these were: prometheus\.yml"):
        write_monitoring(tmp_path)
    assert (tmp_path / "prometheus.yml").read_text() == "mine"

    write_monitoring(tmp_path, force=True)
    assert load(tmp_path / "prometheus.yml")["rule_files"] == ["rules/*.yml"]


def test_a_directory_that_cannot_be_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="expected a directory that can be written to"):
        write_monitoring(tmp_path / "file" / "below")
