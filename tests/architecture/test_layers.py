"""Imports run downhill only. The tables here are the architecture; the code obeys them.

Everything is read from the syntax tree: no module of gristmill is imported, so a broken one is judged too.
An import inside a function counts like any other, except where a test says "at the top". A test judges all modules and
names each that is wrong: a test for each of them would take ten times as long.
"""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "gristmill"
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))

# Highest first. A module may import from lower rows and from its own package, never from a neighbour in its row.
ROWS = (
    {"cli"},
    {"inspection"},
    {"dashboard"},
    {"config"},
    {"workflows", "deduplication"},
    {"pipeline"},
    {"backends", "core"},
    {"runs"},
    {"worker"},
    {"engine"},
    {"stages"},
    {"models"},
    {"kernels", "tasks", "storage", "metrics"},
    {"lazy_names"},
    {"errors"},
    {"secrets"},
)
LEVEL = {name: len(ROWS) - i for i, row in enumerate(ROWS) for name in row}
UNREACHABLE = len(ROWS) + 1  # testing/ and whatever has no row: it may import anything and nobody may import it
FREE = {"gristmill", "gristmill.__version__"}  # the root package holds the version and nothing that acts

# Folder → what it may not import although the rows would allow it, or that is not ours.
MODALITIES = {"text", "image", "audio", "video", "interleaved"}
INSPECTION_SEES = {"inspection", "dashboard", "kernels", "tasks", "storage", "errors"}  # files, and nothing of runs
FORBIDDEN = {
    "kernels/": {"ray", "pandas", "threading", "time", "os"},
    "stages/": {"ray"},
    "engine/": {"ray", "threading", "multiprocessing", "asyncio", "socket", "subprocess", "time", "random", "os"}
    | {"gristmill.storage", "gristmill.models"},
    "dashboard/": {f"gristmill.{package}" for package in LEVEL.keys() - {"dashboard", "metrics", "storage", "errors"}},
    "inspection/": {f"gristmill.{package}" for package in LEVEL.keys() - INSPECTION_SEES},
}
FORBIDDEN["stages/io/"] = {f"gristmill.stages.{modality}" for modality in MODALITIES}  # it serves them all
FORBIDDEN |= {f"stages/{mine}/": {f"gristmill.stages.{other}" for other in MODALITIES - {mine}} for mine in MODALITIES}

# The scheduler knows what a stage needs, never what it does.
ENGINE_SEES_OF_STAGES = {"gristmill.stages.base", "gristmill.stages.resources", "gristmill.stages.worker_info"}

# Users know workflows from beside the stages; these files re-export ours and hold nothing else.
SHIMS = {f"stages/deduplication/{method}/workflow.py" for method in ("exact", "fuzzy", "semantic")} | {
    f"stages/text/deduplication/{name}.py" for name in ("removal", "removal_workflow", "semantic")
}
SHIMS |= {f"stages/deduplication/{path}__init__.py" for path in ("", "semantic/")}
# And they call `executor.execute(stages, tasks)`, which is a pipeline without a name.
SHIMS |= {"backends/stage_lists.py"}

# Library → the folders that may import it at the top of a module. Elsewhere it is imported where it is used,
# so that `import gristmill` and the start of a worker stay light and an optional library stays optional.
HEAVY = {
    "fsspec": ("storage/",),
    "llvmlite": ("kernels/text/",),
    "numba": ("kernels/",),
    "pandas": (),
    "prometheus_client": ("metrics/exposition.py",),
    "ray": (),
    "rich": ("cli/", "inspection/terminal/", "metrics/"),
    "scipy": (),
    "aiohttp": ("testing/", "models/client/"),
    "cchardet": (),
    "fasttext": (),
    "fastwarc": (),
    "huggingface_hub": (),
    "isal": (),
    "justext": (),
    "lxml": (),
    "onnxruntime": (),
    "pycurl": (),
    "resiliparse": (),
    "safetensors": (),
    "textual": ("inspection/terminal/",),
    "tokenizers": (),
    "torch": (),
    "trafilatura": (),
    "transformers": (),
    "typer": ("cli/",),
}
CONFINED = {
    "fsspec",
    "numba",
    "prometheus_client",
    "rich",
    "typer",
}  # not even inside a function elsewhere: each has one kind of place


def imported_names(nodes: Iterator[ast.AST], package: list[str]) -> Iterator[str]:
    """Yield absolute dotted names; `from a import b` yields `a.b`, since b may be a module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def executed_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is imported: no function bodies, no `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from executed_at_import(child)


@cache
def imports_of(file: str, *, at_the_top: bool = False) -> list[str]:
    tree = syntax_tree(file)
    package = ["gristmill", *Path(file).parent.parts]
    return sorted(imported_names(executed_at_import(tree) if at_the_top else ast.walk(tree), package))


@cache
def syntax_tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def is_within(name: str, prefix: str) -> bool:
    return f"{name}.".startswith(f"{prefix}.")


def row_of(name: str) -> int:
    """Return the level of a dotted name of ours."""
    return LEVEL.get(name.split(".")[1], UNREACHABLE)


def wrong_imports(is_wrong: Callable[[str, str], bool], *, at_the_top: bool = False) -> list[str]:
    """Return "file: name" for every import that is wrong there."""
    return [
        f"{file}: {name}" for file in FILES for name in imports_of(file, at_the_top=at_the_top) if is_wrong(file, name)
    ]


def test_a_module_imports_only_from_below():
    def points_uphill(file: str, name: str) -> bool:
        package = file.partition("/")[0].removesuffix(".py")
        is_judged = package in LEVEL and file not in SHIMS and is_within(name, "gristmill") and name not in FREE
        return is_judged and not is_within(name, f"gristmill.{package}") and row_of(name) >= LEVEL[package]

    assert wrong_imports(points_uphill) == []


def test_a_folder_does_not_import_what_it_must_not_know():
    def is_banned(file: str, name: str) -> bool:
        banned = [names for folder, names in FORBIDDEN.items() if file.startswith(folder)]
        return any(is_within(name, ban) for names in banned for ban in names)

    assert wrong_imports(is_banned) == []


def test_the_engine_sees_of_stages_only_their_needs():
    of_stages = {
        (file, name)
        for file in FILES
        if file.startswith("engine/")
        for name in imports_of(file)
        if is_within(name, "gristmill.stages")
    }

    assert {pair for pair in of_stages if not any(is_within(pair[1], seen) for seen in ENGINE_SEES_OF_STAGES)} == set()


def test_heavy_libraries_are_not_imported_at_the_top():
    def is_heavy(file: str, name: str) -> bool:
        library = name.partition(".")[0]
        return library in HEAVY and not file.startswith(HEAVY[library])

    assert wrong_imports(is_heavy, at_the_top=True) == []


def test_each_confined_library_is_imported_in_its_own_place_only():
    def is_elsewhere(file: str, name: str) -> bool:
        library = name.partition(".")[0]
        return library in CONFINED and not file.startswith(HEAVY[library])

    assert wrong_imports(is_elsewhere) == []


def is_of_a_shim(node: ast.stmt) -> bool:
    """Whether a statement only leads elsewhere: at once, or when a name is first asked for."""
    if isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign):  # the assignments are __all__ and where names are
        return True
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING" and all(isinstance(one, ast.ImportFrom) for one in node.body)
    return ast.unparse(node) == "import importlib" or (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")


def test_a_shim_holds_nothing_but_a_docstring_and_imports():
    bodies = {file: syntax_tree(file).body for file in SHIMS & set(FILES)}

    assert {file for file, body in bodies.items() if not all(map(is_of_a_shim, body))} == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os.path", ["os.path"]),
        ("from gristmill import stages", ["gristmill.stages"]),
        ("from .. import errors", ["gristmill.errors"]),
        ("from .base import X", ["gristmill.stages.base.X"]),
        ("def f():\n    import ray", []),
        ("if TYPE_CHECKING:\n    import pandas", []),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", ["torch"]),
    ],
)
def test_the_reading_of_imports_misses_nothing_that_runs(source, expected):
    assert list(imported_names(executed_at_import(ast.parse(source)), ["gristmill", "stages"])) == expected
