"""Files of machine code: what they give back is what was put in, or a reason; never something else."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gristmill.errors import RunFailed
from gristmill.kernels.dedup.union_find import flatten
from gristmill.kernels.object_code import ObjectCode, compile_function, signature_of
from gristmill.kernels.targets import all_targets, host_targets, known_targets
from gristmill.stages import kernel_compiler, kernel_sets
from gristmill.stages.compiled_kernel import KERNELS_VARIABLE, _runs_here, _trusted_code, why_missing
from gristmill.stages.kernel_compiler import build_sets, compile_kernels, kernel_names, try_set
from gristmill.stages.kernel_sets import KernelSet, NoCode, digest_of, set_bytes, shipped, sources_of
from gristmill.storage.byte_cache import CACHE_VARIABLE

NAMES = ("dedup.union_find.flatten", "dedup.union_find.join_equal")
CODES = {
    name: ObjectCode(f"s_{n}", bytes([n]) * 50, ("abort",), ("data",), ("uint8*",)) for n, name in enumerate(NAMES)
}
MADE_WITH = {"numba": "0"}
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "some.kernels"
    path.write_bytes(set_bytes("some", MADE_WITH, CODES))
    return path


def reason(file, name=NAMES[0], target="some"):
    with pytest.raises(NoCode) as problem:
        KernelSet(file, target).code(name)
    return str(problem.value)


def test_code_comes_back_as_it_was(file):
    found = KernelSet(file, "some")

    assert {name: found.code(name) for name in NAMES} == CODES
    assert found.contents.made_with == MADE_WITH


def test_the_same_code_gives_the_same_bytes_in_any_order(file):
    assert set_bytes("some", MADE_WITH, dict(reversed(CODES.items()))) == file.read_bytes()


def test_a_changed_byte_is_noticed_wherever_it_is(file):
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        found = KernelSet(file, "some")
        given = []
        for name in NAMES:
            try:
                given.append(found.code(name) == CODES[name])
            except NoCode:
                given.append(None)
        assert False not in given
        assert None in given, f"byte {place} can be changed unnoticed"


def test_a_file_that_is_cut_gives_what_is_whole(file):
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        assert "some.kernels" in reason(file, NAMES[-1])


def test_reasons(file, tmp_path):
    other = tmp_path / "other.kernels"
    other.write_bytes(file.read_bytes())

    assert reason(file, "text.words.count_words") == "some.kernels does not have it"
    assert reason(tmp_path / "none.kernels") == "none.kernels is not there"
    assert reason(other, target="other") == "other.kernels cannot be used: it was made for some"
    other.write_bytes(b"something else altogether, and long enough to be taken for the beginning")
    assert reason(other, target="other") == "other.kernels cannot be used: it is not a file of this version"


def test_code_of_other_sources_is_not_used(file, monkeypatch):
    monkeypatch.setattr(kernel_sets, "_digest_of_file", lambda path: b"changed")

    assert reason(file) == "some.kernels was made from other sources"


def test_sources_are_a_module_with_all_it_imports_and_how_code_is_made():
    sources = sources_of("text.words")

    assert {"text/words.py", "text/blocks.py", "text/inline.py", "object_code.py", "targets.py"} <= set(sources)
    assert "kmeans.py" not in sources
    assert digest_of(sources) != digest_of(sources[1:])


def test_kernels_are_found_without_importing_them():
    assert len(kernel_names()) >= 35
    assert {"text.words.count_words", "tokens.tokenize.tokenize", "tally.count_measures"} <= set(kernel_names())


def test_this_checkout_has_code_for_machines_like_this():
    for target in known_targets():
        found = shipped(target.name)
        assert sorted(found.contents.kernels) == sorted(kernel_names()), "`make setup` compiles them"
        for name in kernel_names():
            found.code(name)


@pytest.mark.slow
def test_a_build_keeps_what_fits_and_compiles_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_compiler, "kernel_names", lambda: list(NAMES))
    target = host_targets()[0]
    said = []

    [file] = build_sets([target], said.append, tmp_path)
    first = file.read_bytes()
    contents = KernelSet(file, target.name).contents
    damaged = first[:-1] + bytes([first[-1] ^ 1])  # of the last kernel
    file.write_bytes(damaged)
    build_sets([target], said.append, tmp_path)
    build_sets([target], said.append, tmp_path)

    assert sorted(contents.kernels) == sorted(NAMES)
    assert {"llvmlite", "numba", "python"} == set(contents.made_with)
    assert file.read_bytes() == first
    assert [words.split(" for ")[0].split(" in ")[0] for words in said] == [
        *("compiling 2 kernels", "compiled 2 kernels", "compiling 1 kernel", "compiled 1 kernel"),
    ]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.slow
def test_what_is_missing_is_compiled_at_once_and_said(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv(KERNELS_VARIABLE, "compile")
    said = []

    why = {name: why_missing(name) for name in NAMES}
    compile_kernels(why, said.append)

    [words] = said
    assert set(why.values()) == {"GRISTMILL_KERNELS=compile"}
    assert re.fullmatch(r"compiling 2 kernels once for this machine, about \d+ s \(GRISTMILL_KERNELS=compile\)", words)
    assert not any(map(why_missing, NAMES))


@pytest.mark.slow
def test_a_kernel_that_cannot_be_compiled_is_said_with_the_error(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    with pytest.raises(RunFailed, match=r"(?s)^expected to compile 1 kernel; got .*no attribute 'wrong'"):
        compile_kernels({"dedup.union_find.wrong": "why"})


@pytest.mark.slow
def test_code_nobody_has_run_is_tried_where_it_may_crash(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    target = host_targets()[-1]
    foreign = tmp_path / f"{target.name}.kernels"
    other = next(kind for kind in all_targets() if kind not in known_targets())
    [code] = compile_function(flatten, signature_of(flatten), [other])
    foreign.write_bytes(set_bytes(target.name, MADE_WITH, {NAMES[0]: code}))

    assert try_set(shipped(target.name).path, target.name)
    assert not try_set(foreign, target.name)


def test_code_that_does_not_run_here_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    untried = host_targets()[0]._replace(is_untried=True)
    tries = iter([False, True])
    monkeypatch.setattr(kernel_compiler, "try_set", lambda path, target: next(tries))
    _runs_here.cache_clear()

    for _ in range(2):  # the second time it is known
        with pytest.raises(NoCode, match=r"\.kernels was tried and does not run here$"):
            _trusted_code(NAMES[0], untried)
        _runs_here.cache_clear()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "another"))
    assert _trusted_code(NAMES[0], untried) == shipped(untried.name).code(NAMES[0])
    _runs_here.cache_clear()


ONLY_WHAT_A_BUILD_HAS = """
import json, sys
from importlib import import_module

allowed, names = json.loads(sys.argv[1])

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if path is None and name not in allowed and name not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"a build of the package does not have {name}", name=name)

sys.meta_path.insert(0, Refuse())
for name in names:
    import_module(f"gristmill.kernels.{name.rpartition('.')[0]}")
"""


@pytest.mark.slow
def test_kernels_can_be_compiled_with_what_a_build_declares():
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]["requires"]
    allowed = [re.split(r"\W", needed, maxsplit=1)[0] for needed in declared] + ["gristmill", "llvmlite"]
    # A package may try what it can do without: all but our own imports are free to fail, and numba's do.
    command = [sys.executable, "-P", "-c", ONLY_WHAT_A_BUILD_HAS, json.dumps([allowed, kernel_names()])]

    tried = subprocess.run(command, capture_output=True, text=True, check=False)

    assert tried.returncode == 0, tried.stderr
