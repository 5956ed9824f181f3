"""The page of reasons and kinds is what the code declares, and the code declares all that it uses."""

import ast
import importlib

import pytest
from tools import ingest_reference

FILES = sorted(
    path.relative_to(ingest_reference.SOURCE).as_posix()
    for folder in ingest_reference.FOLDERS[:-1]
    for path in (ingest_reference.SOURCE / folder).rglob("*.py")
)
CALLS = {"Dropped": (0, "reason", "REASONS"), "Quarantined": (1, "kind", "KINDS")}


def test_the_page_is_up_to_date():
    assert ingest_reference.PLACE.read_text(encoding="utf-8") == ingest_reference.render(), "run make docs"


def declared(table):
    return {name for _, module in ingest_reference.declaring_modules() for name in getattr(module, table, {})}


def names_used(file):
    """Yield the table and the name of each reason and kind that a module uses, where it is a constant."""
    tree = ast.parse((ingest_reference.SOURCE / file).read_text(encoding="utf-8"))
    module = importlib.import_module(
        "gristmill." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    )
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS):
        place, keyword, table = CALLS[ast.unparse(call.func)]
        given = (
            call.args[place]
            if len(call.args) > place
            else next((k.value for k in call.keywords if k.arg == keyword), None)
        )
        if isinstance(given, ast.Constant):
            yield table, given.value
        elif isinstance(given, ast.Name) and given.id.isupper():
            yield table, getattr(module, given.id)


@pytest.mark.parametrize("file", FILES)
def test_every_reason_and_kind_is_declared(file):
    assert [(table, name) for table, name in names_used(file) if name not in declared(table)] == []


def test_the_calls_of_pages_are_found():
    assert {name for _, name in names_used("stages/text/html/extract_html.py")} >= {
        "too_large",
        "undecodable",
        "time_limit",
    }
