"""`Exposition`: the latest snapshot of each run of this process as text for Prometheus.

The one user of prometheus-client, imported only when metrics are to be exposed. What the metrics are is the
catalog's; here is what a server needs beyond a snapshot: labels that stay the same, and counters that never fall.
"""

import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from operator import add

import msgspec
from prometheus_client import CollectorRegistry, generate_latest, push_to_gateway
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gristmill import __version__
from gristmill.metrics.catalog import (
    BUCKET_BOUNDS,
    CATALOG,
    ENDED,
    OTHER_REASONS,
    RUN_LABELS,
    Buckets,
    Metric,
    Sample,
    Value,
)
from gristmill.metrics.snapshot import RunSnapshot

MOST_RUNS = 50  # of one process that are remembered: a workflow has a dozen
MAX_LABEL_CHARS = 200
FINGERPRINT_CHARS = 8
PLAIN_TEXT = ""  # for a client that does not say what it accepts


class Exposition:
    """Takes snapshots from the thread of a run and gives text to any other thread."""

    def __init__(self, executor: str = "") -> None:
        self._executor = executor
        self._runs: list[_RunView] = []
        self._lock = threading.Lock()

    def add(self, snapshot: RunSnapshot) -> None:
        """Take in the newest snapshot. One of another run, or of a run begun again, is kept beside those before."""
        with self._lock:
            last = self._runs[-1] if self._runs else None
            if (
                last is None
                or last.snapshot.name != snapshot.name
                or (_has_ended(last) and snapshot.state not in ENDED)
            ):
                if last is not None and not _has_ended(last):  # a step of a search, which does not say so itself
                    last.snapshot = msgspec.structs.replace(last.snapshot, state="finished")
                self._runs = [*self._runs[-MOST_RUNS + 1 :], _RunView(snapshot, self._executor)]
            else:
                last.snapshot = snapshot

    def end(self, state: str) -> None:
        """Say how the latest run ended, if it could not say so itself."""
        with self._lock:
            if self._runs and not _has_ended(self._runs[-1]):
                self._runs[-1].snapshot = msgspec.structs.replace(self._runs[-1].snapshot, state=state)

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing more to come from the latest run."""
        return bool(self._runs) and _has_ended(self._runs[-1])

    def encode(self, accept: str = PLAIN_TEXT) -> tuple[bytes, str]:
        """Return text and content type, in the format asked for. Counters are at the highest value they have had."""
        encoder, content_type = choose_encoder(accept)
        if isinstance(encoder, partial) and encoder.keywords.get("escaping") == "underscores":
            # Names in the catalog have nothing to escape. So the bytes are the same, and the client need not look at
            # every character of every name: 28 % of the time of a scrape with 1,024 GPUs.
            encoder = partial(encoder, escaping="allow-utf-8")
        with self._lock:
            registry = _registry(_Collected(self._runs, is_held=True))
            return encoder(registry), content_type

    def exact(self) -> bytes:
        """Return what lasts of runs that ended, and all of one that runs; counters as the books have them.

        For files and gateways, where no rate is computed: the scheduler takes back what a lost attempt had counted.
        """
        with self._lock:
            return generate_latest(_registry(_Collected(self._runs, is_held=False)))

    def push(self, gateway: str, timeout_s: float) -> None:
        """Give what lasts of each run to a Pushgateway, where it replaces what the same plan gave before.

        Raises OSError if it cannot be reached or refuses.
        """
        with self._lock:
            for run in self._runs:
                push_to_gateway(
                    gateway,
                    job="gristmill",
                    registry=_registry(_Collected([run], is_held=False)),
                    grouping_key={"pipeline": run.labels[0], "plan": run.fingerprint},
                    timeout=timeout_s,
                )


class _RunView:
    """One run: who it is, its latest snapshot, and the highest value each of its counters was seen at."""

    def __init__(self, first: RunSnapshot, executor: str) -> None:
        began = datetime.fromtimestamp(first.started_at, UTC)
        self.fingerprint = first.fingerprint[:FINGERPRINT_CHARS]
        # Remembered from the first snapshot: each segment of a run has a plan of its own, but the run has one name.
        self.labels = (_label(first.name), f"{self.fingerprint}-{began:%Y%m%dT%H%M%SZ}")
        self.started_at = first.started_at
        self._info = (__version__, executor, self.fingerprint)
        self.snapshot = first
        self._highest: dict[tuple[str, ...], Value] = {}
        self._names: dict[tuple[str, ...], set[str]] = {}

    def samples(self, metric: Metric, *, is_held: bool) -> Iterator[Sample]:
        """The samples of one metric, with the labels of the run first."""
        if _has_ended(self) and not metric.lasts:
            return
        if metric.name == "gristmill_run_info":
            yield (*self.labels, *map(_label, self._info)), 1.0
            return
        for own, value in self._bounded(metric):
            labels = (*self.labels, *own)
            if is_held and metric.kind in ("counter", "histogram"):
                key = (metric.name, *labels)
                value = self._highest[key] = _higher(self._highest.get(key), value)  # noqa: PLW2901
            yield labels, value

    def _bounded(self, metric: Metric) -> Iterable[Sample]:
        """Samples with labels a server can take, one for each set of labels, and no more than allowed."""
        together: dict[tuple[str, ...], Value] = {}
        for given, value in metric.samples(self.snapshot):
            labels = tuple(map(_label, given))
            if metric.most is not None:
                *others, last = labels
                names = self._names.setdefault((metric.name, *others), set())
                if len(names) < metric.most:
                    names.add(last)  # those met first: a name that came and went with its rank would be no counter
                labels = (*others, last if last in names else OTHER_REASONS)
            known = together.get(labels)
            together[labels] = value if known is None else _sum(known, value)
        return together.items()


class _Collected(Collector):
    """What a registry of prometheus-client asks for: families of samples, made anew from the snapshots."""

    def __init__(self, runs: Iterable[_RunView], *, is_held: bool) -> None:
        self._runs = tuple(runs)
        self._is_held = is_held

    def collect(self) -> Iterator[Family]:
        for metric in CATALOG:
            family = _family(metric)
            for run in self._runs:
                for labels, value in run.samples(metric, is_held=self._is_held):
                    _add(family, labels, value)
            if family.samples:
                yield family

    def describe(self) -> Iterator[Family]:
        """Nothing: otherwise registering it would make an exposition to learn its names."""
        return iter(())


def _registry(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def _family(metric: Metric) -> Family:
    labels = (*RUN_LABELS, *metric.labels)
    if metric.kind == "counter":
        return CounterMetricFamily(metric.name, metric.help, labels=labels)
    if metric.kind == "histogram":
        return HistogramMetricFamily(metric.name, metric.help, labels=labels)
    if metric.kind == "info":
        return InfoMetricFamily(metric.name.removesuffix("_info"), metric.help, labels=labels)
    return GaugeMetricFamily(metric.name, metric.help, labels=labels)


def _add(family: Family, labels: tuple[str, ...], value: Value) -> None:
    if isinstance(family, HistogramMetricFamily):
        assert isinstance(value, Buckets)  # noqa: S101  # the catalog says so of its histograms
        bounds = (*map(str, BUCKET_BOUNDS), "+Inf")
        family.add_metric(labels, list(zip(bounds, map(float, value.at_most), strict=True)), value.total)
    elif isinstance(family, InfoMetricFamily):
        family.add_metric(labels, {})
    elif isinstance(family, CounterMetricFamily | GaugeMetricFamily):
        family.add_metric(labels, value)  # type: ignore[arg-type]  # only a histogram has buckets


def _higher(known: Value | None, value: Value) -> Value:
    if known is None:
        return value
    if isinstance(known, Buckets) and isinstance(value, Buckets):
        return Buckets(tuple(map(max, known.at_most, value.at_most)), max(known.total, value.total))
    return max(known, value)  # type: ignore[type-var]  # both are numbers


def _sum(known: Value, value: Value) -> Value:
    if isinstance(known, Buckets) and isinstance(value, Buckets):
        return Buckets(tuple(map(add, known.at_most, value.at_most)), known.total + value.total)
    return known + value  # type: ignore[operator]  # both are numbers


def _has_ended(run: _RunView) -> bool:
    return run.snapshot.state in ENDED


def _label(text: str) -> str:
    """Text that a server takes as a label: a reason may hold half a character, or a page."""
    return text[:MAX_LABEL_CHARS].encode("utf-8", "replace").decode("utf-8")
