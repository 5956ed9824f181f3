"""`MetricsOptions`: how a run tells Prometheus about itself, checked when made."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gristmill.errors import ConfigError
from gristmill.secrets import without_secrets

LINGER_S = 15.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class MetricsOptions:
    """How a run tells Prometheus about itself; with nothing set, it does not."""

    port: int | None = None  # 0 for any that is free
    host: str = LOOPBACK
    discovery: str | Path | None = None  # directory for a file that names the endpoint, for Prometheus' file_sd_configs
    file: str | Path | None = None  # `*.prom` in the textfile directory of a node exporter
    push: str | None = None  # URL of a Pushgateway, given what lasts of a run when it has ended
    linger_s: float = LINGER_S  # at most, until the end of a run was fetched, if anything was fetched before

    def __bool__(self) -> bool:
        return any(way is not None for way in (self.port, self.discovery, self.file, self.push))

    def __post_init__(self) -> None:
        if self.linger_s < 0:
            raise ConfigError(f"--metrics-linger: expected seconds, 0 or more; got {self.linger_s:g}")
        if self.port is not None and not 0 <= self.port <= 65535:
            raise ConfigError(f"--metrics-port: expected 0 to 65535; got {self.port}")
        if self.push is not None:
            try:
                url = urlsplit(self.push)
                is_url = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or True)
            except ValueError:  # a port that is not a number
                is_url = False
            if not is_url:
                raise ConfigError(
                    f"--metrics-push: expected a URL such as http://gateway:9091; got {without_secrets(self.push)!r}"
                )
