"""The built wheel, in an environment that has what it declares and nothing else, without the checkout on any path."""

import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from tools.snippets import script_lines

from gristmill.kernels.targets import all_targets
from gristmill.stages.kernel_compiler import kernel_names
from gristmill.stages.kernel_sets import KernelSet

# Heavy: where nothing is built yet, kernels are compiled for every kind of machine, which takes two minutes of a core;
# beside other tests four, and the first test here has to wait for it.
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.xdist_group("wheel"),
    pytest.mark.timeout(900),
]

REPOSITORY = Path(__file__).parents[2]


def declared(name, found):
    """The packages that a package needs, and those they need in turn, as far as they apply here."""
    for line in metadata.requires(name) or []:
        needed, _, condition = line.partition(";")
        if "extra ==" in condition or not _applies(condition):
            continue
        package = re.split(r"[^\w.-]", needed.strip(), maxsplit=1)[0]
        if package.lower() not in found:
            found[package.lower()] = metadata.distribution(package)
            declared(package, found)
    return found


def _applies(condition):
    from packaging.markers import Marker

    return not condition.strip() or Marker(condition.strip()).evaluate()


def link(distribution, target):
    """Put an installed package into another environment: the same files under another name."""
    for file in distribution.files or []:
        if ".." not in file.parts and "__pycache__" not in file.parts:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            if not (target / file).exists():
                (target / file).symlink_to(Path(distribution.locate_file(file)).resolve())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    made = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    [path] = made.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The variables of a new environment with the wheel in it."""
    place = tmp_path_factory.mktemp("installed") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    [packages] = place.glob("lib/python*/site-packages")
    for distribution in declared("gristmill", {}).values():
        link(distribution, packages)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "-q", "--no-index"]
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    cache = {"GRISTMILL_CACHE_DIR": str(tmp_path_factory.mktemp("empty"))}
    return {**kept, **cache, "PATH": f"{place / 'bin'}:/usr/bin:/bin"}


def run(environment, directory, *command):
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done


def test_every_snippet_of_readme_runs_and_compiles_nothing(environment, tmp_path):
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (tmp_path / "readme.py").write_text("\n".join(script_lines(readme)), encoding="utf-8")

    done = run(environment, tmp_path, "python", "readme.py")

    assert "compiling" not in done.stdout + done.stderr


def test_the_checkout_is_not_used(environment, tmp_path):
    done = run(environment, tmp_path, "python", "-c", "import gristmill, sys; print(gristmill.__file__, *sys.path)")

    assert "site-packages/gristmill" in done.stdout
    assert str(REPOSITORY / "src") not in done.stdout


def test_it_says_that_it_is_typed(wheel):
    assert "gristmill/py.typed" in zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize("target", [target.name for target in all_targets()])
def test_it_has_every_kernel_for_every_kind_of_machine(wheel, target, tmp_path):
    zipfile.ZipFile(wheel).extract(f"gristmill/kernels/{target}.kernels", tmp_path)
    found = KernelSet(tmp_path / f"gristmill/kernels/{target}.kernels", target)

    assert sorted(found.contents.kernels) == sorted(kernel_names())
    for name in kernel_names():
        assert found.code(name).takes, name
