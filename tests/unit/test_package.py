"""`from gristmill import Pipeline` works for people, editors and type checkers, and costs nothing until it is used."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gristmill


def imported_for_checkers():
    """The modules and names below `if TYPE_CHECKING:`, which is what editors and mypy read."""
    tree = ast.parse(Path(gristmill.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_what_checkers_read_is_what_is_fetched():
    homes = {name: f"gristmill.{module}" for module, names in gristmill._HOMES.items() for name in names}

    assert homes == imported_for_checkers()
    assert sorted(homes) == gristmill.__all__


@pytest.mark.parametrize("name", gristmill.__all__)
def test_a_name_is_the_one_of_its_home(name):
    assert getattr(gristmill, name) is getattr(importlib.import_module(imported_for_checkers()[name]), name)
    assert name in dir(gristmill)


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match=r"^module 'gristmill' has no attribute 'JsonReader'; did you mean 'Json"):
        gristmill.JsonReader  # noqa: B018
    with pytest.raises(ImportError, match="JsonReader"):
        exec("from gristmill import JsonReader")
    assert not hasattr(gristmill, "__wrapped__")


@pytest.mark.slow
def test_importing_loads_no_other_module_of_ours_before_a_name_is_used():
    code = "import sys, gristmill; print(*sorted(m for m in sys.modules if m.startswith('gristmill')))"
    code += "; gristmill.Pipeline; print('gristmill.pipeline' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.splitlines() == ["gristmill gristmill.lazy_names", "True False"]


@pytest.mark.slow
def test_importing_takes_less_than_three_tenths_of_a_second_of_a_core():
    """CPU time of the child, for other work on the machine stretches the rest; the best of five, less Python's own."""

    def best_s(code):
        times = []
        for _ in range(5):
            before = os.times()
            subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
            after = os.times()
            times.append(after.children_user + after.children_system - before.children_user - before.children_system)
        return min(times)

    assert best_s("import gristmill") - best_s("pass") < 0.3
