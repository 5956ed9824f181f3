"""What is installed with gristmill is what is listed here, and `gristmill doctor` says of every extra what it is for.

A new package, or a new extra, is explained with the change that brings it.
"""

import re
import tomllib
from pathlib import Path

import gristmill
from gristmill.cli.doctor import EXTRAS

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
OF_THE_PROJECT = {"dev", "docs", "heavy"}  # no stage needs these
LOADED_BY_OTHERS = {"unidic_lite": "fugashi", "s3fs": "fsspec"}
# What `pip install gristmill` brings, without the versions. Of these only prometheus-client is for watching runs.
CORE = {
    *("cloudpickle", "fsspec", "ftfy", "msgspec", "numba", "numpy", "pandas", "prometheus-client", "psutil", "pyarrow"),
    *("pyyaml", "rich", "typer", "xxhash"),
}


def test_the_core_needs_these_packages_and_no_other():
    needed = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]

    assert sorted(re.split(r"[^\w-]", each)[0] for each in needed) == sorted(CORE)


def test_every_extra_is_explained():
    extras = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    assert sorted(EXTRAS) == sorted(extras.keys() - OF_THE_PROJECT)


def test_what_doctor_looks_for_is_imported_by_a_module_of_ours():
    package = Path(gristmill.__file__).parent
    ours = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py") if path.name != "doctor.py")
    named = {module for _, modules in EXTRAS.values() for module in modules} - LOADED_BY_OTHERS.keys()
    unused = [module for module in named if not re.search(rf'\b(import|from) {module}\b|"{module}[".]', ours)]
    assert unused == []
