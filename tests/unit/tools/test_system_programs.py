"""The script behind `make test-heavy` installs what is missing, or names it; what is there is left alone."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "tools" / "system_programs.sh"
EVERYTHING = {"prometheus", "promtool", "prometheus-pushgateway", "chromium", "node", "npm"}
TOOLS = ("sort", "tr", "cat", "mkdir", "dirname")


@pytest.fixture
def machine(tmp_path):
    """Return a function that runs the script where only the programs given exist, and says what was installed."""

    def run(programs, *, user=0):
        bin_dir = tmp_path / "bin"
        bin_dir.mkdir(exist_ok=True)
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        for tool in TOOLS:
            (bin_dir / tool).unlink(missing_ok=True)
            (bin_dir / tool).symlink_to(shutil.which(tool))
        scripts = {name: f'echo "{name} $*" >>{calls}' for name in programs} | {"id": f"echo {user}"}
        for name, script in scripts.items():
            (bin_dir / name).write_text(f"#!/bin/sh\n{script}\n")
            (bin_dir / name).chmod(0o755)
        done = subprocess.run(
            ["/bin/sh", SCRIPT, tmp_path / "node"],
            env={"PATH": str(bin_dir)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done, calls.read_text().splitlines() if calls.exists() else []

    return run


def test_what_is_missing_is_installed_and_nothing_else(machine):
    done, calls = machine(EVERYTHING - {"chromium", "promtool", "prometheus"} | {"apt-get"})

    assert done.returncode == 0, done.stderr
    assert calls[:2] == [
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends chromium prometheus",
    ]


def test_a_second_call_installs_nothing(machine):
    _, first = machine(EVERYTHING | {"apt-get"})
    done, second = machine(EVERYTHING | {"apt-get"})

    assert done.returncode == 0, done.stderr
    assert [call.split()[0] for call in first] == ["npm"]
    assert second == []


@pytest.mark.parametrize(("programs", "user"), [({"apt-get"}, 1000), (set(), 0)], ids=["not root", "not Debian"])
def test_where_nothing_may_be_installed_the_missing_packages_are_named(machine, programs, user):
    done, calls = machine(EVERYTHING - {"chromium", "promtool"} | programs, user=user)

    assert done.returncode == 1
    assert "chromium prometheus;" in done.stderr
    assert calls == []
