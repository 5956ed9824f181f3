"""From what a run has measured to a simulation of it, on the machine it had or on another.

A change is `name=value` or `name=2x`: `gpus=8`, `memory=2x`. Rates are the run's own: a stage that was slow because two
processes shared a core stays as slow on more cores, so the answer for more CPUs is a cautious one.
"""

import dataclasses
from collections.abc import Sequence

from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, StageSpec, as_bytes
from gristmill.errors import ConfigError, nearest
from gristmill.runs.progress import MeasuredGroup, MeasuredRun
from gristmill.storage.sizes import parse_size

NAMES = ("nodes", "cpus", "gpus", "gpu_memory_gb", "memory", "items")


def spec_of(run: MeasuredRun) -> SimulationSpec:
    """The simulation of a run as it was."""
    if not run.groups or not run.groups[0].tasks:
        raise ConfigError(f"simulate: expected a run that has done something; {run.name!r} found nothing to do")
    node = NodeSpec(
        cpus=run.cpus,
        gpus=len(run.gpu_memory_gb),
        gpu_memory_gb=max(run.gpu_memory_gb, default=80.0),
        memory=run.memory_bytes,
    )
    return SimulationSpec(
        items=run.groups[0].tasks,
        stages=tuple(_stage(group) for group in run.groups),
        nodes=(node,),
        rescale_interval_s=run.rescale_interval_s,
        source_bytes=round(run.source_bytes),
    )


def _stage(group: MeasuredGroup) -> StageSpec:
    return StageSpec(
        name=group.name,
        cpus=group.cpus,
        gpus=group.gpus,
        gpu_memory_gb=group.gpu_memory_gb,
        service_s=group.service_s,
        sigma=group.sigma,
        setup_s=group.setup_s,
        dispatch_s=group.dispatch_s,
        fan_out=group.fan_out,
        batch_size=group.batch_size,
        item_bytes=round(group.output_bytes),
        num_workers=group.num_workers,
        lanes=group.lanes,
    )


def changed(spec: SimulationSpec, changes: Sequence[str]) -> SimulationSpec:
    """The same work on other machines."""
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or name not in NAMES:
            hint = nearest(name, NAMES)
            raise ConfigError(
                f"simulate: expected --what-if NAME=VALUE with one of {list(NAMES)}; got {change!r}{hint}"
            )
        spec = _with(spec, name, value)
    return spec


def _with(spec: SimulationSpec, name: str, value: str) -> SimulationSpec:
    (node,) = spec.nodes
    if name == "items":
        return dataclasses.replace(spec, items=round(_new(name, value, spec.items)))
    if name == "nodes":
        node = dataclasses.replace(node, count=round(_new(name, value, node.count)))
    elif name == "cpus":
        node = dataclasses.replace(node, cpus=_new(name, value, node.cpus))
    elif name == "gpus":
        node = dataclasses.replace(node, gpus=round(_new(name, value, node.gpus)))
    elif name == "gpu_memory_gb":
        node = dataclasses.replace(node, gpu_memory_gb=_new(name, value, node.gpu_memory_gb))
    else:
        node = dataclasses.replace(node, memory=round(_new(name, value, as_bytes(node.memory))))
    return dataclasses.replace(spec, nodes=(node,))


def _new(name: str, value: str, old: float) -> float:
    """A number, a size, or a multiple of what it was."""
    text = value.strip()
    try:
        if text.endswith("x"):
            found = float(text[:-1]) * old
        else:
            found = float(parse_size(text)) if name == "memory" else float(text)
    except ValueError:
        found = -1.0
    if not found > 0 and not (name == "gpus" and found == 0):
        raise ConfigError(f"simulate: expected {name} as a number or a multiple such as 2x; got {value!r}")
    return found
