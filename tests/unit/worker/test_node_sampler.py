"""A machine is sampled from what its system says; a container with a limit counts as the machine."""

import sys
from types import ModuleType, SimpleNamespace

import psutil
import pytest

from gristmill.metrics.node_sample import SAMPLE_S
from gristmill.worker import machine
from gristmill.worker.machine import Gpus, NodeSampler


@pytest.fixture
def no_container(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "none")


@pytest.mark.usefixtures("no_container")
def test_it_says_what_psutil_says():
    sample = NodeSampler("here").take()

    assert sample.node == "here"
    assert sample.memory_total_bytes == psutil.virtual_memory().total
    assert 0 < sample.memory_bytes < sample.memory_total_bytes
    times = psutil.cpu_times()
    assert sample.cpu_s == pytest.approx(
        sum(times) - times.idle - times.iowait - times.guest - times.guest_nice, rel=0.01
    )


def test_the_memory_of_a_container_counts(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 200000\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)

    assert machine.memory() == (500_000, 1_000_000)

    (tmp_path / "memory.max").write_text("max\n")
    assert machine.memory()[1] == psutil.virtual_memory().total


def test_without_files_of_the_system_psutil_is_asked(monkeypatch, tmp_path):
    for name in ("MEMINFO", "STAT", "CGROUP"):
        monkeypatch.setattr(machine, name, tmp_path / "none")
    sample = NodeSampler().take()

    assert 0 < sample.memory_bytes < sample.memory_total_bytes
    assert sample.cpu_s > 0
    assert sample.node


def test_a_sample_is_kept_for_some_seconds(monkeypatch):
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr(machine, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: 1000.0 + clock.now))
    sampler = NodeSampler()
    first = sampler.latest()
    clock.now += SAMPLE_S - 0.1
    assert sampler.latest() is first
    clock.now += 0.2
    assert sampler.latest().sampled_at == first.sampled_at + SAMPLE_S + 0.1


def pretend_nvml(monkeypatch, *, broken=()):
    """A module with the calls of NVML that are made; no machine of ours has a GPU."""
    nvml = ModuleType("pynvml")
    nvml.NVMLError = type("NVMLError", (Exception,), {})
    nvml.nvmlInit = lambda: None
    nvml.nvmlDeviceGetCount = lambda: 2
    nvml.nvmlDeviceGetHandleByIndex = lambda index: index
    nvml.nvmlDeviceGetMemoryInfo = lambda handle: SimpleNamespace(used=10 + handle, total=80)

    def rates(handle):
        if handle in broken:
            raise nvml.NVMLError("GPU is lost")
        return SimpleNamespace(gpu=25)

    nvml.nvmlDeviceGetUtilizationRates = rates
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


def test_gpus_are_sampled_where_nvml_knows_any(monkeypatch):
    pretend_nvml(monkeypatch)
    one, other = Gpus().samples()

    assert (one.name, one.memory_bytes, one.memory_total_bytes, one.utilization) == ("0", 10, 80, 0.25)
    assert (other.name, other.memory_bytes) == ("1", 11)


def test_a_gpu_that_is_lost_is_left_out_and_one_that_was_never_there_too(monkeypatch):
    nvml = pretend_nvml(monkeypatch, broken=(0,))
    assert [gpu.name for gpu in Gpus().samples()] == ["1"]

    def no_driver():
        raise nvml.NVMLError("no driver")

    nvml.nvmlInit = no_driver
    assert list(Gpus().samples()) == []
