"""Files and functions stay small enough to read at one sitting."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "gristmill"
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
FILE_LINES = 500
FUNCTION_LINES = 60
HOMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "handler"}
KNOWN_NAMES = {  # users import from there
    *("tasks/utils.py", "utils/__init__.py", "utils/merge_file_prefixes.py", "utils/performance_utils.py"),
    *("stages/text/utils/__init__.py", "stages/text/utils/constants.py"),
}


def test_a_file_fits_its_limit():
    lines = {file: len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in FILES}

    assert {file: count for file, count in lines.items() if count > FILE_LINES} == {}


def test_every_function_fits_its_limit():
    long = [
        f"{file}: {node.name}"
        for file in FILES
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES
    ]

    assert long == []


def test_a_module_is_named_after_what_it_is_about():
    named = sorted(set(FILES) - KNOWN_NAMES)

    assert [file for file in named if not HOMELESS.isdisjoint(Path(file).with_suffix("").parts)] == []
