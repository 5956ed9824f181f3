"""The page of reasons and kinds is what the code declares, and the code declares all that it uses."""

import ast
import importlib
import re
from dataclasses import fields
from functools import cache
from typing import get_args

import pytest
from tools import ingest_reference

from gristmill.stages.ingest_limits import IngestLimits

FILES = sorted(
    path.relative_to(ingest_reference.SOURCE).as_posix()
    for folder in ingest_reference.FOLDERS
    for path in (ingest_reference.SOURCE / folder).rglob("*.py")
)
CALLS = {"Dropped": (0, "reason", "REASONS"), "Quarantined": (1, "kind", "KINDS"), "drop": (None, "reason", "REASONS")}
# What was named by whoever made it, here or in another process, and is only handed on.
HANDED_ON = {
    ("stages/text/download/base/iterator.py", "reason"),
    ("stages/text/download/base/iterator.py", "why.reason"),
    ("stages/text/pdf/pdf_extractor.py", "reason"),
    ("stages/text/pdf/pdf_process.py", "said.kind"),
    ("stages/text/pdf/pdf_process.py", "said.reason"),
}


class Module:
    """The reasons and kinds of one module, found without running it: constants, wherever they come from."""

    def __init__(self, file):
        self.file = file
        self.tree = ast.parse((ingest_reference.SOURCE / file).read_text(encoding="utf-8"))
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.names = vars(importlib.import_module(f"gristmill.{name}"))
        self.functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]
        self.calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]

    def used(self):
        """Yield the table and the name of each reason and kind, and each argument that hides what it is."""
        for call in self.calls:
            place, keyword, table = CALLS.get(called(call), (None, "", ""))
            given = argument(call, place, keyword) if table else None
            if given is not None and (self.file, ast.unparse(given)) not in HANDED_ON:
                yield from ((table, name) for name in self.values(given))

    def values(self, node):
        """What an expression may be: a constant, one of two, what a function returns, what its callers give."""
        match node:
            case ast.Constant(value):
                return {value} - {None}
            case ast.IfExp():
                found = self.values(node.body) | self.values(node.orelse)
            case ast.Name(id=name) if isinstance(self.names.get(name), str):
                found = {self.names[name]}
            case ast.Name():
                found = self.of_variable(node)
            case ast.Attribute(attr=name):
                found = self.of_field(name)
            case ast.Call():
                found = self.of_function(called(node))
            case _:
                found = set()
        return found or {f"cannot be found: {ast.unparse(node)}"}

    def of_function(self, name):
        """What a function of this module returns."""
        made = [each for each in self.functions if each.name == name]
        returns = [each.value for function in made for each in ast.walk(function) if isinstance(each, ast.Return)]
        return set().union(*map(self.values, returns))

    def of_variable(self, node):
        """What is assigned to a variable of its function, or given for a parameter by those who call that."""
        [function, *_] = [each for each in reversed(self.functions) if node in ast.walk(each)]
        found = set()
        for each in ast.walk(function):
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == node.id:
                found |= self.values(each.value)
        parameters = [each.arg for each in function.args.args if each.arg != "self"]
        if node.id in parameters:
            place = parameters.index(node.id)
            given = [argument(call, place, node.id) for call in self.calls if called(call) in self.names_of(function)]
            found |= set().union(*(self.values(each) for each in given if each is not None))
        return found

    def names_of(self, function):
        """What a function is called by: its name, and that of its class if it makes one."""
        classes = [each for each in ast.walk(self.tree) if isinstance(each, ast.ClassDef) and function in each.body]
        return {each.name for each in classes} if function.name == "__init__" else {function.name}

    def of_field(self, field):
        """What a field of a class of this module may hold, if its annotation lists that."""
        classes = [each for each in self.tree.body if isinstance(each, ast.ClassDef)]
        annotated = [each for one in classes for each in one.body if isinstance(each, ast.AnnAssign)]
        listed = [each.annotation for each in annotated if ast.unparse(each.target) == field]
        return {name for each in listed for name in get_args(self.names.get(ast.unparse(each)))}


def called(call):
    return ast.unparse(call.func).rpartition(".")[2]


def argument(call, place, keyword):
    if place is not None and len(call.args) > place:
        return call.args[place]
    return next((each.value for each in call.keywords if each.arg == keyword), None)


@cache
def module(file):
    return Module(file)


@cache
def declared(table, source):
    """The names a source declares; pages are part of two of them."""
    sources = {source} | ({"Pages"} if source in ("Mathematics", "Common Crawl") else set())
    modules = ingest_reference.declaring_modules()
    found = [each for place, each in modules if ingest_reference.source_of(place) in sources]
    return {name for each in found for name in getattr(each, table, {})}


def test_the_page_is_up_to_date():
    assert ingest_reference.PLACE.read_text(encoding="utf-8") == ingest_reference.render(), "run make docs"


@pytest.mark.parametrize("file", FILES)
def test_every_reason_and_kind_is_declared_for_its_source(file):
    source = ingest_reference.source_of(file)
    assert [(table, name) for table, name in module(file).used() if name not in declared(table, source)] == []


@pytest.mark.parametrize("table", ingest_reference.TABLES)
def test_what_a_source_declares_it_uses(table):
    used = {(ingest_reference.source_of(file), *use) for file in FILES for use in module(file).used()}
    sources = set(ingest_reference.SOURCES.values())
    own = {(source, table, name) for source in sources for name in declared(table, source) - declared(table, "Pages")}
    assert own <= used


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("text/pdf/pdf_reader.py", {"too_large"}),
        ("math/modifiers/chunk_merge.py", {"no_content", "repeated_chunk", "too_long"}),
        ("text/io/reader/webdataset.py", {"repeated_key", "repeated_field", "bad_field", "too_large", "not_a_file"}),
        ("text/io/reader/jsonl.py", {"bad_utf8", "broken_json", "not_an_object"}),
        ("text/download/common_crawl/warc_iterator.py", {"damaged", "too_large", "bad_record", "bad_utf8"}),
        ("text/download/wikipedia/iterator.py", {"other_namespace", "redirect", "other_model", "empty"}),
    ],
)
def test_names_are_found_however_they_are_given(file, expected):
    assert {name for _, name in module(f"stages/{file}").used()} == expected


def test_a_name_that_cannot_be_found_out_is_no_name():
    made = module("stages/text/html/extract_html.py")
    hidden = ast.parse("Dropped(reasons[0])").body[0].value
    assert made.values(hidden.args[0]) == {"cannot be found: reasons[0]"}


def test_what_is_handed_on_is_still_there():
    given = {
        (file, ast.unparse(argument(call, *CALLS[called(call)][:2]) or call))
        for file in FILES
        for call in module(file).calls
        if called(call) in CALLS
    }
    assert given >= HANDED_ON


@pytest.mark.parametrize("limit", [field.name for field in fields(IngestLimits)])
def test_every_limit_is_read_by_some_stage(limit):
    stages = (ingest_reference.SOURCE / "stages").rglob("*.py")
    assert any(re.search(rf"limits\.{limit}\b", path.read_text(encoding="utf-8")) for path in stages)
