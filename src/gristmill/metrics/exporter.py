"""`Exporter`: an observer of runs that passes their snapshots on to Prometheus, in the ways it was asked to.

A server may fetch them (`port`, found through a file in `discovery`), a file may hold them (`file`), a gateway may be
given the last ones (`push`). Nothing listens unless asked. What cannot work is reported before a worker starts; what
fails later is reported and never ends a run.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from gristmill.errors import ConfigError, Interrupted
from gristmill.metrics.metrics_options import MetricsOptions
from gristmill.metrics.snapshot import SNAPSHOT_S, RunSnapshot
from gristmill.secrets import without_secrets

if TYPE_CHECKING:
    from gristmill.metrics.endpoint import Endpoint

__all__ = ["Exporter", "MetricsOptions"]

SNAPSHOTS_S = 1.0  # no server asks more often
FILE_S = 5.0  # between two writes of the file
GATEWAY_READY_S, GATEWAY_PUSH_S = 2.0, 10.0


def _to_standard_error(message: str) -> None:
    print(f"gristmill: {message}", file=sys.stderr, flush=True)


class Exporter:
    """Give it to a run as its observer; `then` is an observer that sees the snapshots too.

    >>> with Exporter(MetricsOptions(port=9095)) as metrics:
    ...     pipeline.run(observer=metrics)
    """

    def __init__(
        self,
        options: MetricsOptions,
        *,
        executor: str = "",
        then: Callable[[RunSnapshot], None] | None = None,
        say: Callable[[str], None] = _to_standard_error,
    ) -> None:
        self._options = options
        self._executor = executor
        self._then = then
        self._say = say
        self._endpoint: Endpoint | None = None
        self._writer: _FileWriter | None = None
        self._announced: Path | None = None

    def __enter__(self) -> "Exporter":
        from gristmill.metrics.exposition import Exposition  # loads prometheus-client: only when it is asked for

        self._exposition = Exposition(self._executor)
        with contextlib.ExitStack() as opened:
            opened.callback(self._close)
            self._open()
            opened.pop_all()
        return self

    def _open(self) -> None:
        options = self._options
        if options.port is not None or options.discovery is not None:
            from gristmill.metrics.endpoint import Endpoint

            self._endpoint = Endpoint(options.host, options.port or 0, self._answer)
            self._say(f"metrics at http://{self._endpoint.target}/metrics")
        if options.discovery is not None and self._endpoint is not None:
            self._announced = _announce(Path(options.discovery), self._endpoint)
        if options.file is not None:
            self._writer = _FileWriter(Path(options.file), self._exposition.exact, self._say)
        if options.push is not None:
            _look_for(options.push, self._say)

    def __call__(self, snapshot: RunSnapshot) -> None:
        """Take in a snapshot."""
        self._exposition.add(snapshot)
        if self._then is not None:
            self._then(snapshot)

    @property
    def snapshot_s(self) -> float:
        """How often it wants a snapshot, or as often as `then` does if that is more."""
        return SNAPSHOTS_S if self._then is None else min(SNAPSHOTS_S, getattr(self._then, "snapshot_s", SNAPSHOT_S))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stopped = isinstance(error, KeyboardInterrupt | Interrupted)
        self._exposition.end("finished" if error is None else "stopped" if stopped else "failed")
        try:
            self._push()
            self._linger()
        finally:
            self._close()

    def _answer(self, accept: str) -> tuple[bytes, str, bool]:
        is_end = self._is_over
        text, content_type = self._exposition.encode(accept)
        return text, content_type, is_end

    _is_over = False

    def _linger(self) -> None:
        """Stay until the end has been fetched: to a server, a run that suddenly vanishes looks killed."""
        self._is_over = True
        endpoint = self._endpoint
        if endpoint is None or not endpoint.scrapes or self._options.linger_s <= 0:
            return
        with _signals_raised(), contextlib.suppress(KeyboardInterrupt):
            if endpoint.saw_end.wait(min(1.0, self._options.linger_s)):
                return
            self._say(f"waiting up to {self._options.linger_s:g} s for Prometheus to fetch the end; Ctrl-C leaves")
            endpoint.saw_end.wait(self._options.linger_s)

    def _push(self) -> None:
        if self._options.push is None:
            return
        try:
            self._exposition.push(self._options.push, GATEWAY_PUSH_S)
        except (OSError, ValueError) as error:
            self._say(without_secrets(f"--metrics-push: {self._options.push} did not accept the metrics: {error}"))

    def _close(self) -> None:
        if self._announced is not None:
            self._announced.unlink(missing_ok=True)
        if self._writer is not None:
            self._writer.close()
        if self._endpoint is not None:
            self._endpoint.close()


def _announce(directory: Path, endpoint: "Endpoint") -> Path:
    """Write the target file that `file_sd_configs` of Prometheus read."""
    path = directory / f"gristmill-{endpoint.target.replace(':', '-').strip('[]')}-{os.getpid()}.json"
    targets = [{"targets": [endpoint.target], "labels": {}}]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write_whole(path, json.dumps(targets).encode())
    except OSError as error:
        raise ConfigError(
            f"--metrics-sd: expected a directory that can be written to; got {directory}: {error}"
        ) from error
    return path


def _write_whole(path: Path, text: bytes) -> None:
    """Write a file so that readers see either the old one or the new one. They are other users' programs."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # a textfile collector looks at *.prom only
    try:
        temporary.write_bytes(text)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


class _FileWriter:
    """Keeps a file current, in a thread: the exposition of a large run takes longer than a scheduler should wait."""

    def __init__(self, path: Path, text: Callable[[], bytes], say: Callable[[str], None]) -> None:
        self._path, self._text, self._say = path, text, say
        self._over = threading.Event()
        self._failed = False
        try:
            _write_whole(path, text())
        except OSError as error:
            raise ConfigError(f"--metrics-file: expected a file that can be written; got {path}: {error}") from error
        self._thread = threading.Thread(target=self._keep, name="gristmill-metrics-file", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._over.wait(FILE_S):
            self._write()

    def _write(self) -> None:
        try:
            _write_whole(self._path, self._text())
            self._failed = False
        except OSError as error:
            if not self._failed:
                self._say(f"--metrics-file: {self._path} could not be written, the run goes on: {error}")
            self._failed = True

    def close(self) -> None:
        """Write the end, and stop."""
        self._over.set()
        self._thread.join()
        self._write()


def _look_for(gateway: str, say: Callable[[str], None]) -> None:
    """Say now if a gateway cannot be reached: it is needed only when the run has ended, and may be back by then."""
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(f"{gateway.rstrip('/')}/-/ready", timeout=GATEWAY_READY_S):  # noqa: S310  # http only: checked
            pass
    except urllib.error.HTTPError:
        pass  # it answers; what stands before it may not let everybody ask for this
    except (OSError, ValueError) as error:
        say(without_secrets(f"--metrics-push: {gateway} does not answer now; it is tried again at the end: {error}"))


@contextlib.contextmanager
def _signals_raised() -> Iterator[None]:
    """Have SIGTERM raise KeyboardInterrupt, as Ctrl-C does: the file for discovery still has to be removed."""
    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
