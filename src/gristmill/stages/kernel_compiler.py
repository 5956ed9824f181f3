"""Compiling kernels, several at a time, in processes of their own: they load numba, which no other process has to.

    python -m gristmill.stages.kernel_compiler [--all]

compiles all kernels into the files that the package carries (`kernel_sets.py`): those for machines like this one, or
with `--all` for every kind there is. A build of the package does the same (`hatch_build.py`); what this file imports
needs numpy, msgspec and numba and nothing else, so a build needs no more. Where a run needs kernels that nothing was
built for, `compile_kernels` puts them into the user's cache.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path

import msgspec

from gristmill.errors import RunFailed
from gristmill.kernels.object_code import ObjectCode, compile_function, link, signature_of
from gristmill.kernels.targets import Target, all_targets, known_targets
from gristmill.stages.compiled_kernel import compiled_here
from gristmill.stages.kernel_sets import DIRECTORY, PACKAGE, SUFFIX, KernelSet, NoCode, set_bytes, shipped

_CHILD = "import json, sys; sys.path[:], work = json.loads(sys.argv[1]); from {0} import {1}; {1}(*work)"
_SECONDS_A_BYTE = 1.4e-4  # of machine code, compiled for one target: 62 s for 450 kB, within a factor of two for each
_START_S = 1.0  # loading numba
_USUAL_BYTES = 12_000

Tell = Callable[[str], None]


def compile_kernels(missing: Mapping[str, str], tell: Tell = lambda said: None) -> None:
    """Compile kernels, given with the reasons, into the user's cache; each is kept as soon as it is done.

    Other processes of this machine may want the same: what one compiles, the others wait for and find.
    """
    reasons = "; ".join(dict.fromkeys(missing.values()))
    tell(f"compiling {_kernels(len(missing))} once for this machine, about {_guess_s(missing):.0f} s ({reasons})")
    _compile(list(missing))


def _kernels(count: int) -> str:
    return "1 kernel" if count == 1 else f"{count} kernels"


# The files of the package


def kernel_names() -> list[str]:
    """Return every kernel: the functions that say how long their arrays must be. Reads files, imports nothing."""
    found: list[str] = []
    for path in sorted(DIRECTORY.rglob("*.py")):
        module = ".".join(path.relative_to(DIRECTORY).with_suffix("").parts)
        functions = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)]
        found += [f"{module}.{node.name}" for node in functions if any(map(_is_sized, node.decorator_list))]
    return found


def _is_sized(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "sized"


def build_sets(targets: Sequence[Target], tell: Tell, directory: Path = DIRECTORY) -> list[Path]:
    """Make the files for these targets; what is in them already, and fits, is kept. Return them."""
    made_with = {"python": ".".join(map(str, sys.version_info[:2]))}
    made_with |= {name: metadata.version(name) for name in ("llvmlite", "numba")}
    files = [directory / f"{target.name}{SUFFIX}" for target in targets]
    names = kernel_names()
    codes = [_kept(KernelSet(file, target.name), names, made_with) for file, target in zip(files, targets, strict=True)]
    wanted = [name for name in names if not all(name in kept for kept in codes)]
    if wanted:
        shown = ", ".join(target.name for target in targets)
        about = f"{_num_processes(len(wanted))} at a time; about {_guess_s(wanted, len(targets)):.0f} s"
        tell(f"compiling {_kernels(len(wanted))} for {shown}, {about}")
        began = time.monotonic()
        for name, made in _compiled(wanted, targets).items():
            for kept, code in zip(codes, made, strict=True):
                kept[name] = code
        tell(f"compiled {_kernels(len(wanted))} in {time.monotonic() - began:.0f} s")
    for file, target, kept in zip(files, targets, codes, strict=True):
        _replace(file, set_bytes(target.name, made_with, kept))
    return files


def _replace(file: Path, content: bytes) -> None:
    if not file.exists() or file.read_bytes() != content:
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(content)
        temporary.replace(file)


def _kept(found: KernelSet, names: Iterable[str], made_with: dict[str, str]) -> dict[str, ObjectCode]:
    """The code in a file that was made by the same compiler from the sources as they are now."""
    codes: dict[str, ObjectCode] = {}
    for name in names if found.contents.made_with == made_with else ():
        try:
            codes[name] = found.code(name)
        except NoCode:
            continue
    return codes


def _guess_s(names: Iterable[str], num_targets: int = 1) -> float:
    """How long compiling takes, from the size of code that was compiled earlier, for whichever target."""
    known = [shipped(target.name).contents.kernels for target in all_targets()]
    sizes = [next((places[name].size for places in known if name in places), _USUAL_BYTES) for name in names]
    each_s = [size * _SECONDS_A_BYTE * (0.75 + 0.25 * num_targets) for size in sizes]
    return _START_S + max([*each_s, sum(each_s) / _num_processes(len(sizes))])


def try_set(file: Path, target: str) -> bool:
    """Whether code for a target runs on this machine. It is tried in a process that may crash."""
    tried = subprocess.run(
        _command("_try", str(file), target), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return tried.returncode == 0


def _try(file: str, target: str) -> None:
    """Link the code of every kernel and call it with nothing to do, which it finds out for itself."""
    found = KernelSet(Path(file), target)
    for name in found.contents.kernels:
        made = found.code(name)
        link(made)(*(0 for kind in made.takes for _ in range(2 if kind.endswith("*") else 1)))


# The processes: each is given its share of the kernels, and ends.


def _num_processes(kernels: int) -> int:
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cpus, kernels))


def _compiled(names: Sequence[str], targets: Sequence[Target]) -> dict[str, list[ObjectCode]]:
    with tempfile.TemporaryDirectory() as results:
        _compile(names, results, targets)
        written = {name: (Path(results) / name).read_bytes() for name in names}
    return {name: msgspec.msgpack.decode(made, type=list[ObjectCode]) for name, made in written.items()}


def _compile(names: Sequence[str], results: str = "", targets: Sequence[Target] = ()) -> None:
    """Compile into files of a directory, or for this machine into the user's cache."""
    shares: list[list[str]] = [[] for _ in range(_num_processes(len(names)))]
    for name in sorted(names, key=lambda name: _guess_s([name]), reverse=True):  # the longest first
        min(shares, key=_guess_s).append(name)
    # The order of a set of names would otherwise differ from one process to the next, and the code with it.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    children: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryFile() as errors:
        try:
            for share in shares:
                command = _command("_work", share, results, [target.name for target in targets])
                children.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=errors))
            failed = any(child.wait() for child in children)  # the first that fails stops all
        finally:
            for child in children:
                child.kill()  # what it has compiled is kept, and there is nothing else to lose
                child.wait()
        if failed:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
            raise RunFailed(f"expected to compile {_kernels(len(names))}; got {said or 'a process that was ended'}")


def _command(function: str, *arguments: object) -> list[str]:
    """The command that calls a function of this module in a new process."""
    return [sys.executable, "-P", "-c", _CHILD.format(__spec__.name, function), json.dumps([sys.path, arguments])]


def _work(names: list[str], results: str, targets: list[str]) -> None:
    """Run in each of the processes."""
    for name in names:
        if not results:
            compiled_here(name)
            continue
        module, _, function = name.rpartition(".")
        kernel = getattr(import_module(f"{PACKAGE}.{module}"), function)
        wanted = [target for target in all_targets() if target.name in targets]
        made = compile_function(kernel, signature_of(kernel), wanted)
        (Path(results) / name).write_bytes(msgspec.msgpack.encode(made))


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile all kernels into the package."""
    import argparse  # no worker needs it

    parser = argparse.ArgumentParser(description="Compile the kernels into the files that the package carries.")
    parser.add_argument("--all", action="store_true", help="for every kind of machine, not only for ones like this")
    chosen = all_targets() if parser.parse_args(arguments).all else known_targets()
    build_sets(chosen, lambda said: print(f"gristmill: {said}", flush=True))


if __name__ == "__main__":
    main()
