"""`write_monitoring`: a directory with all that a Prometheus and a Grafana server need to show runs of gristmill.

    prometheus.yml                      what is scraped: runs by their target files, Ray by its own
    rules/gristmill.yml                 alerts and recording rules
    targets/                            `--metrics-sd` of a run writes here
    grafana/dashboards/*.json           the dashboards
    grafana/provisioning/, grafana.ini  where Grafana finds them and its server
    compose.yaml                        both servers in containers

Nothing is started and nothing is fetched here. Both servers listen on this machine only.
"""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import yaml

from gristmill.errors import ConfigError
from gristmill.metrics.rules import duration, rule_groups

PROMETHEUS_PORT, GRAFANA_PORT, RUN_PORT = 9090, 3000, 9095
PROMETHEUS_IMAGE, GRAFANA_IMAGE = "prom/prometheus:v2.53.0", "grafana/grafana:12.0.0"
RAY_DIR = "/tmp/ray"  # noqa: S108  # where Ray keeps what it tells Prometheus unless told otherwise
RAY_TARGETS = "prom_metrics_service_discovery.json"
LOOPBACK = "127.0.0.1"
TARGETS = "targets"
DATASOURCE = "gristmill-prometheus"


@dataclass(frozen=True)
class MonitoringOptions:
    """Where the servers listen, and where runs are found beyond those that announce themselves."""

    prometheus_port: int = PROMETHEUS_PORT
    grafana_port: int = GRAFANA_PORT
    run_hosts: tuple[str, ...] = ()  # HOST or HOST:PORT of runs started with --metrics-port there
    ray_dir: str = RAY_DIR
    interval_s: float = 5.0  # between two scrapes; less than runs linger (15 s), so that the end of each is seen
    factor: float = 1.0  # of all times in the alerts


DEFAULTS = MonitoringOptions()


def write_monitoring(directory: Path, options: MonitoringOptions = DEFAULTS, *, force: bool = False) -> list[Path]:
    """Write the files and return their paths. Raises ConfigError if one was changed by hand, unless `force` is set."""
    directory = directory.absolute()
    texts = {directory / name: text for name, text in _files(directory, options).items()}
    changed = [path for path, text in texts.items() if path.exists() and path.read_text(encoding="utf-8") != text]
    if changed and not force:
        names = ", ".join(str(path.relative_to(directory)) for path in changed)
        raise ConfigError(
            f"{directory}: expected files that were not changed; these were: {names} (--force replaces them)"
        )
    try:
        (directory / TARGETS).mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{directory}: expected a directory that can be written to; got {error}") from error
    return list(texts)


def dashboards() -> dict[str, str]:
    """The dashboards as they are shipped: file name to text. `tools/grafana_dashboards.py` writes them."""
    folder = resources.files("gristmill.metrics") / "grafana"
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".json")]
    return {entry.name: entry.read_text(encoding="utf-8") for entry in sorted(found, key=lambda entry: entry.name)}


def _files(directory: Path, options: MonitoringOptions) -> dict[str, str]:
    return {
        "prometheus.yml": _yaml(_prometheus(options), "Prometheus: what is scraped. Paths are relative to this file."),
        "rules/gristmill.yml": _yaml(rule_groups(options.factor), "Alerts and recording rules of gristmill."),
        "grafana/provisioning/datasources/gristmill.yml": _yaml(_datasource(options)),
        "grafana/provisioning/dashboards/gristmill.yml": _yaml(_provider(directory / "grafana" / "dashboards")),
        "grafana/grafana.ini": _grafana_ini(directory / "grafana", options),
        "compose.yaml": _yaml(_compose(directory, options), "docker compose up -d; both listen on this machine only."),
        **{f"grafana/dashboards/{name}": text for name, text in dashboards().items()},
    }


def _prometheus(options: MonitoringOptions) -> dict[str, object]:
    hosts = [host if ":" in host else f"{host}:{RUN_PORT}" for host in options.run_hosts]
    every = duration(options.interval_s)
    runs: dict[str, object] = {
        "job_name": "gristmill",
        "file_sd_configs": [{"files": [f"{TARGETS}/*.json"], "refresh_interval": every}],
    }
    if hosts:
        runs["static_configs"] = [{"targets": hosts}]
    ray = {"job_name": "ray", "file_sd_configs": [{"files": [f"{options.ray_dir.rstrip('/')}/{RAY_TARGETS}"]}]}
    return {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "rule_files": ["rules/*.yml"],
        "scrape_configs": [runs, ray],
    }


def _datasource(options: MonitoringOptions) -> dict[str, object]:
    source = {
        "name": "Prometheus of gristmill",
        "uid": DATASOURCE,
        "type": "prometheus",
        "access": "proxy",
        "url": f"http://{LOOPBACK}:{options.prometheus_port}",
        "isDefault": True,
        "jsonData": {"timeInterval": duration(options.interval_s)},
    }
    return {"apiVersion": 1, "datasources": [source]}


def _provider(folder: Path) -> dict[str, object]:
    provider = {"name": "gristmill", "type": "file", "folder": "gristmill", "options": {"path": str(folder)}}
    return {"apiVersion": 1, "providers": [provider]}


def _grafana_ini(home: Path, options: MonitoringOptions) -> str:
    return (
        "# Grafana started on this machine. It needs a name and a password.\n"
        f"[server]\nhttp_addr = {LOOPBACK}\nhttp_port = {options.grafana_port}\n"
        f"[paths]\ndata = {home / 'data'}\nlogs = {home / 'logs'}\nprovisioning = {home / 'provisioning'}\n"
        "[auth.anonymous]\nenabled = false\n[users]\nallow_sign_up = false\n"
        "[analytics]\nreporting_enabled = false\ncheck_for_updates = false\ncheck_for_plugin_updates = false\n"
    )


def _compose(directory: Path, options: MonitoringOptions) -> dict[str, object]:
    # In the host's network: a run listens on the loopback address, which a container with its own network cannot reach.
    ray = [f"{options.ray_dir}:{options.ray_dir}:ro"] if Path(options.ray_dir).is_dir() else []
    prometheus = {
        "image": PROMETHEUS_IMAGE,
        "network_mode": "host",
        "command": [
            f"--config.file={directory}/prometheus.yml",
            f"--web.listen-address={LOOPBACK}:{options.prometheus_port}",
            "--storage.tsdb.path=/prometheus",
        ],
        "volumes": [f"{directory}:{directory}:ro", *ray, "prometheus-data:/prometheus"],
    }
    grafana = {
        "image": GRAFANA_IMAGE,
        "network_mode": "host",
        "environment": {
            "GF_SERVER_HTTP_ADDR": LOOPBACK,
            "GF_SERVER_HTTP_PORT": str(options.grafana_port),
            "GF_PATHS_PROVISIONING": f"{directory}/grafana/provisioning",
            "GF_AUTH_ANONYMOUS_ENABLED": "false",
            "GF_USERS_ALLOW_SIGN_UP": "false",
            "GF_ANALYTICS_REPORTING_ENABLED": "false",
            "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        },
        "volumes": [f"{directory}/grafana:{directory}/grafana:ro", "grafana-data:/var/lib/grafana"],
    }
    return {
        "services": {"prometheus": prometheus, "grafana": grafana},
        "volumes": {"prometheus-data": {}, "grafana-data": {}},
    }


def _yaml(content: dict[str, object], comment: str = "") -> str:
    text = yaml.safe_dump(content, sort_keys=False, width=1000)
    return f"# {comment}\n{text}" if comment else text
