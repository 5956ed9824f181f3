"""What to simulate: machines, stages and items, as a YAML file or a dictionary.

    items: 1000                     # source items
    seed: 7
    nodes: {count: 1, cpus: 64, gpus: 1, gpu_memory_gb: 102, memory: 64GB}
    stages:
      - {name: encode, gpu_memory_gb: 1, service_s: 2, setup_s: 10}
      - {name: pick, service_s: 1, fan_out: 3, item_bytes: 1MB}
      - {name: caption, gpus: 0.5, service_s: 10, sigma: 1.5}
    faults: {kill_worker_every_s: 60, poison_share: 0.001}
    slowdowns:
      - {stage: caption, from_s: 300, until_s: 360, factor: 4}   # factor .inf: it stands still

`service_s` is the mean time of one item; with `sigma` it is log-normal around it, and with `longest` no item takes more
than that many times the mean. An item may be a batch of `documents`, some of which may be poison. Everything except the
items and the names of the stages has a default.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from gristmill.errors import ConfigError, nearest
from gristmill.stages.resources import Resources
from gristmill.storage.sizes import parse_size

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """Machines of one kind. `link` is bytes a second between this machine and another; without it moving is free."""

    count: int = 1
    cpus: float = 1.0
    gpus: int = 0
    gpu_memory_gb: float = 80.0
    memory: int | str = "64GB"
    link: int | str | None = None


@dataclass(frozen=True, kw_only=True)
class StageSpec:
    """One stage: what a worker of it takes, and how long an item takes it."""

    name: str
    cpus: float = 1.0
    gpus: float = 0.0
    gpu_memory_gb: float = 0.0
    service_s: float = 1.0
    sigma: float = 0.0
    longest: float | None = None
    setup_s: float = 0.0
    dispatch_s: float = 0.0  # between two calls, while a message is on its way
    fan_out: float = 1.0  # on average: 2.5 is two outputs of one item and three of the next
    batch_size: int = 1
    item_bytes: int | str = 0
    num_workers: int | None = None
    may_run_twice: bool = False
    lanes: int = 1  # items a worker has under way at once, each for `service_s`

    @property
    def resources(self) -> Resources:
        return Resources(cpus=self.cpus, gpus=self.gpus, gpu_memory_gb=self.gpu_memory_gb)


@dataclass(frozen=True, kw_only=True)
class FaultSpec:
    """What goes wrong. A lost node is replaced after `node_back_s`; `kill_at` has shares of all workers by second.

    Of the documents, `poison_share` make the first stage raise and `fatal_share` end its worker.
    """

    kill_worker_every_s: float | None = None
    lose_node_every_s: float | None = None
    node_back_s: float = 60.0
    kill_at: Mapping[float, float] = field(default_factory=dict)
    poison_share: float = 0.0
    fatal_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SlowdownSpec:
    """A stage that takes `factor` times as long for a while."""

    stage: str
    from_s: float = 0.0
    until_s: float = math.inf
    factor: float = 1.0


@dataclass(frozen=True, kw_only=True)
class SimulationSpec:
    """Everything. The same spec and seed give the same run, to the event."""

    items: int
    stages: tuple[StageSpec, ...]
    nodes: tuple[NodeSpec, ...] = (NodeSpec(),)
    faults: FaultSpec = FaultSpec()
    slowdowns: tuple[SlowdownSpec, ...] = ()
    seed: int = 0
    rescale_interval_s: float = 5.0
    source_bytes: int | str = 0  # of one item; 0 is not known
    documents: int = 1  # in one item

    @classmethod
    def parse(cls, document: object) -> "SimulationSpec":
        """Check a document as read from YAML."""
        fields = _mapping(document, "simulation")
        stages = fields.get("stages")
        if not isinstance(stages, list) or not stages:
            raise ConfigError(f"simulation: expected a list of stages; got {stages!r}")
        made = {
            **fields,
            "nodes": _several(NodeSpec, fields.get("nodes", {}), "nodes"),
            "stages": _several(StageSpec, stages, "stages"),
            "faults": _make(FaultSpec, fields.get("faults", {}), "faults"),
            "slowdowns": _several(SlowdownSpec, fields.get("slowdowns", []), "slowdowns"),
        }
        spec = _make(cls, made, "simulation")
        names = [stage.name for stage in spec.stages]
        for i, slowdown in enumerate(spec.slowdowns):
            if slowdown.stage not in names:
                raise ConfigError(
                    f"slowdowns[{i}]: expected a stage; got {slowdown.stage!r}{nearest(slowdown.stage, names)}"
                )
        return spec


def _several(kind: type[T], documents: object, who: str) -> tuple[T, ...]:
    if not isinstance(documents, list):
        return (_make(kind, documents, who),)
    return tuple(_make(kind, document, f"{who}[{i}]") for i, document in enumerate(documents))


def _mapping(document: object, who: str) -> Mapping[str, object]:
    if not isinstance(document, Mapping):
        raise ConfigError(f"{who}: expected names with values; got {document!r}")
    return document


def _make(kind: type[T], document: object, who: str) -> T:
    fields = dict(_mapping(document, who))
    known = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all kinds here are dataclasses
    for name in fields:
        if name not in known:
            raise ConfigError(f"{who}: expected one of {sorted(known)}; got {name!r}{nearest(name, known)}")
    missing = [
        name
        for name, f in known.items()
        if name not in fields and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{who}: expected {missing[0]!r}; it is missing")
    return kind(**fields)


def as_bytes(size: int | str) -> int:
    """A size given as a number or in words; an item may weigh nothing."""
    return 0 if size == 0 else parse_size(size)
