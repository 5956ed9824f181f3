"""`gristmill doctor` says of every extra what it is for; a new one is explained with the change that brings it."""

import re
import tomllib
from pathlib import Path

import gristmill
from gristmill.cli.doctor import EXTRAS

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
OF_THE_PROJECT = {"dev", "docs", "heavy"}  # no stage needs these


def test_every_extra_is_explained():
    extras = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]

    assert sorted(EXTRAS) == sorted(extras.keys() - OF_THE_PROJECT)


LOADED_BY_OTHERS = {"unidic_lite": "fugashi", "s3fs": "fsspec"}


def test_what_doctor_looks_for_is_imported_by_a_module_of_ours():
    package = Path(gristmill.__file__).parent
    ours = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py") if path.name != "doctor.py")
    named = {module for _, modules in EXTRAS.values() for module in modules} - LOADED_BY_OTHERS.keys()
    unused = [module for module in named if not re.search(rf'\b(import|from) {module}\b|"{module}[".]', ours)]
    assert unused == []
