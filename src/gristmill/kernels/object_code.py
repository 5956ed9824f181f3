"""Kernels to machine code and back: what numba compiles, as bytes that a process without numba can run.

Loading numba takes 0.4 s and 60 MB in every process, llvmlite alone 0.08 s; so only a process that compiles loads
numba. Code is made for a `Target`, which need not be this machine. There are no files here: keeping the bytes is the
caller's business.
"""

import ctypes
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from llvmlite.binding import ExecutionEngine, ModuleRef, TargetMachine

    from gristmill.kernels.targets import Target

Compiled: TypeAlias = Callable[..., int]

TOO_SHORT = -(1 << 62)  # and the next ones: no kernel returns anything like it

# Functions compiled code may call: LLVM turns loops that fill or copy memory into these.
_LIBRARY = ("memcpy", "memmove", "memset")
# Numba's code for exceptions refers to these; kernels do not raise, so any address will do.
_FOR_EXCEPTIONS = ("numba_", "NRT_", "Py")


class ObjectCode(NamedTuple):
    """Machine code with one function in it, which is given a length after every pointer."""

    symbol: str
    code: bytes
    unused: tuple[str, ...]  # functions and variables it refers to and never uses
    checked: tuple[str, ...]  # arrays whose lengths it checks; it returns TOO_SHORT + k if checked[k] is too short
    takes: tuple[str, ...]  # "uint8*" for an array, "int64" for an integer


def signature_of(function: Callable[..., object]) -> tuple[str, ...]:
    """Return what a kernel takes, as its annotations say: "uint8*" for an array, "int64" for an integer."""
    kinds = [kind for name, kind in inspect.get_annotations(function).items() if name != "return"]
    return tuple("int64" if kind is int else f"{_scalar(kind)}*" for kind in kinds)


def _scalar(array: object) -> str:
    _, dtype = typing.get_args(array)
    return str(typing.get_args(dtype)[0].__name__)


def compile_function(
    function: Callable[..., int | None], signature: Sequence[str], targets: Sequence["Target"]
) -> list[ObjectCode]:
    """Compile a function of pointers ("uint8*") and integers ("int64") that returns an integer or nothing.

    The machine code takes the length of each array after its pointer, and compares it with what the function states
    (`kernels.text.sizes.sized`) before anything else. Numba's part is done once for all targets and takes three
    quarters of the time for one.
    """
    from numba import cfunc, types

    kinds: list[object] = []
    for name in signature:
        known = getattr(types, name.removesuffix("*"))
        kinds += [types.CPointer(known), types.int64] if name.endswith("*") else [known]
    with _unoptimised():
        compiled = cfunc(types.int64(*kinds), nopython=True, error_model="numpy")(_checking(function, signature))
    code = compiled.inspect_llvm(), compiled.native_name
    return [_emitted(function, signature, *code, target) for target in targets]


def _emitted(
    function: Callable[..., object], signature: Sequence[str], code: str, symbol: str, target: "Target"
) -> ObjectCode:
    import llvmlite.binding as llvm

    machine = target.machine()
    for key, value in (("triple", target.triple), ("datalayout", machine.target_data)):
        code = re.sub(rf'^target {key} = ".*"$', f'target {key} = "{value}"', code, count=1, flags=re.MULTILINE)
    module = llvm.parse_assembly(code)
    _optimise(module, symbol, machine)
    declared = [found.name for found in (*module.functions, *module.global_variables) if found.is_declaration]
    called = [name for name in declared if not name.startswith("llvm.")]
    unknown = [name for name in called if name not in _LIBRARY and not name.startswith(_FOR_EXCEPTIONS)]
    if unknown:
        raise ValueError(f"{function.__qualname__}: expected a kernel that calls no library; got {unknown}")
    own = _rename(module, symbol, function.__name__)
    unused = tuple(sorted(set(called) - set(_LIBRARY)))
    return ObjectCode(own, machine.emit_object(module), unused, tuple(_least_sizes(function)), tuple(signature))


def _rename(module: "ModuleRef", symbol: str, name: str) -> str:
    """Give everything in a module a reproducible name: numba's names hold counters and addresses."""
    module.name = name
    own = f"gristmill_{name}"
    defined = [f for f in module.functions if not f.is_declaration]
    for number, function in enumerate(defined):
        function.name = own if function.name == symbol else f"{own}_{number}"
    for number, variable in enumerate(v for v in module.global_variables if not v.is_declaration):
        variable.name = f"{own}_data_{number}"
    return own


def _checking(function: Callable[..., int | None], signature: Sequence[str]) -> Callable[..., int]:
    """Return a function that also takes the length of each array, and checks it before it calls the given one.

    It is generated as text, since numba compiles neither `*arguments` nor a loop over functions.
    """
    from gristmill.kernels.text.inline import inline, part

    names = list(inspect.signature(function).parameters)
    kinds = zip(names, signature, strict=True)
    given = [f"{name}, size_of_{name}" if kind.endswith("*") else name for name, kind in kinds]
    lines = [f"def checking({', '.join(given)}):"]
    known: dict[str, object] = {"kernel": part(function)}  # `inline` would have numba work through all of it twice
    for place, (name, least) in enumerate(_least_sizes(function).items()):
        known[f"least_{name}"] = inline(least)
        lines += [f"    if size_of_{name} < least_{name}({', '.join(inspect.signature(least).parameters)}):"]
        lines += [f"        return {TOO_SHORT + place}"]
    call = f"kernel({', '.join(names)})"
    lines += [f"    return {call}"] if function.__annotations__["return"] is int else [f"    {call}", "    return 0"]
    exec("\n".join(lines), known)  # noqa: S102  # made of names of our own parameters
    return cast("Callable[..., int]", known["checking"])


def _least_sizes(function: Callable[..., object]) -> dict[str, Callable[..., int]]:
    """The lengths a function states, as Python functions: some are compiled too, for use in other kernels."""
    stated = cast("dict[str, Callable[..., int]]", getattr(function, "least_sizes", {}))
    return {name: getattr(least, "py_func", least) for name, least in stated.items()}


@contextmanager
def _unoptimised() -> Iterator[None]:
    """Have numba leave code unoptimised.

    It would optimise every function, and again what is called with each of its callers: a kernel of thirty parts took
    three times as long to compile. Here the whole kernel is optimised, once, when it is complete.
    """
    from numba import config

    before = config.OPT
    config.OPT = type(before)(0)
    try:
        yield
    finally:
        config.OPT = before


def _optimise(module: "ModuleRef", symbol: str, machine: "TargetMachine") -> None:
    import llvmlite.binding as llvm

    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"  # nothing else calls it, so it is removed where it was inlined
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"  # what numba keeps for exceptions is removed if nothing refers to it
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def link(made: ObjectCode) -> Compiled:
    """Put machine code where it can run. Called without the interpreter's lock, with integers.

    An array is two of them, its address and its length.
    """
    import llvmlite.binding as llvm

    from gristmill.kernels.targets import host_machine

    library = ctypes.CDLL(None)
    for name in _LIBRARY:
        llvm.add_symbol(name, _address(library[name]))
    for name in made.unused:
        if llvm.address_of_symbol(name) is None:  # a symbol holds for all code of the process, numba's included
            llvm.add_symbol(name, _address(library.abort))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(made.code))
    engine.finalize_object()
    _engines().append(engine)
    kinds: list[type[ctypes.c_void_p] | type[ctypes.c_int64]] = []
    for name in made.takes:
        kinds += [ctypes.c_void_p, ctypes.c_int64] if name.endswith("*") else [ctypes.c_int64]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(engine.get_function_address(made.symbol))


def _address(function: object) -> int:
    return cast("int", ctypes.cast(cast("ctypes._FuncPointer", function), ctypes.c_void_p).value)


@cache
def _engines() -> list["ExecutionEngine"]:
    """The owners of linked code: what they own lives as long as the process."""
    return []
