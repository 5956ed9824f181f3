"""What README promises is held by tests that exist, among them one of a machine that fails."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
TABLE = (REPOSITORY / "docs" / "guide" / "promises.md").read_text(encoding="utf-8")
MACHINE = "tests/fault/", "tests/stores/", "tests/ray/", "tests/promises/test_inputs.py::"
MACHINE += "tests/promises/test_never_silent.py::", "tests/e2e/test_endings.py"

ROWS = {cells[1].strip(): cells[2:4] for line in TABLE.splitlines() if len(cells := line.split("|")) == 5}


def promised():
    section = README.partition("## What you can rely on")[2].partition("What is not promised")[0]
    return re.findall(r"^- \*\*(.+?)\*\*", section, flags=re.MULTILINE)


def named_in(cell):
    return re.findall(r"`(tests/[^`]+)`", cell)


def test_readme_and_the_table_promise_the_same():
    assert promised() == [name for name in ROWS if name not in ("promise", "---")]
    assert len(promised()) > 8


@pytest.mark.parametrize("promise", promised())
def test_a_promise_is_held_by_tests_that_exist(promise):
    for test in [*named_in(ROWS[promise][0]), *named_in(ROWS[promise][1])]:
        path, _, name = test.partition("::")
        assert (REPOSITORY / path).exists(), test
        if name:
            tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


@pytest.mark.parametrize("promise", promised())
def test_a_promise_is_tested_when_the_machine_fails_too(promise):
    calm, failing = map(named_in, ROWS[promise])

    assert calm
    assert failing
    assert [test for test in failing if not test.startswith(MACHINE)] == []


def test_readme_says_what_is_not_promised():
    assert len(re.findall(r"^- ", README.partition("What is not promised:")[2].partition("##")[0], re.MULTILINE)) >= 4
