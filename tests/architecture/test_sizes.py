"""Files and functions stay small enough to read at one sitting."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "gristmill"
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
FILE_LINES = 500
FUNCTION_LINES = 60
HOMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "handler"}
KNOWN_NAMES = {"tasks/utils.py"}  # users import TaskPerfUtils from there


@pytest.mark.parametrize("file", FILES)
def test_a_file_fits_its_limit(file):
    assert len((ROOT / file).read_text(encoding="utf-8").splitlines()) <= FILE_LINES


@pytest.mark.parametrize("file", FILES)
def test_every_function_fits_its_limit(file):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    assert [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= FUNCTION_LINES] == []


@pytest.mark.parametrize("file", sorted(set(FILES) - KNOWN_NAMES))
def test_a_module_is_named_after_what_it_is_about(file):
    assert HOMELESS.isdisjoint(Path(file).with_suffix("").parts)
