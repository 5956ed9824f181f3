"""How much memory a run may use if nobody says."""

import psutil
import pytest

from gristmill.worker import machine
from gristmill.worker.machine import DEFAULT_SHARE, default_limit


@pytest.fixture(autouse=True)
def no_container(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "cgroup")


def test_a_run_takes_a_share_of_what_the_system_says_is_available(tmp_path, monkeypatch):
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       4000 kB\nMemFree:        1 kB\nMemAvailable:   3000 kB\n")
    monkeypatch.setattr(machine, "MEMINFO", told)

    assert default_limit() == int(3000 * 1024 * DEFAULT_SHARE)


@pytest.mark.parametrize("text", [None, "MemTotal: 4000 kB\n"], ids=["no-file", "an-old-kernel"])
def test_where_the_system_does_not_say_it_in_a_file_it_is_asked_otherwise(tmp_path, monkeypatch, text):
    if text is not None:
        (tmp_path / "meminfo").write_text(text)
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")

    assert 0 < default_limit() <= psutil.virtual_memory().total


def test_a_container_has_no_more_than_its_limit(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemAvailable:   3000 kB\n")
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "cgroup" / "memory.max").write_text(f"{2000 * 1024}\n")
    (tmp_path / "cgroup" / "memory.current").write_text(f"{500 * 1024}\n")
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")

    assert default_limit() == int(1500 * 1024 * DEFAULT_SHARE)
