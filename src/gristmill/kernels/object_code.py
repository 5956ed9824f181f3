"""Kernels to machine code and back: what numba compiles, as bytes that a process without numba can run.

Loading numba takes 0.4 s and 60 MB in every process, llvmlite alone 0.08 s; so only the process that compiles a kernel
for the first time on a machine loads numba. There are no files here: keeping the bytes is the caller's business.
"""

import ctypes
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from llvmlite.binding import ExecutionEngine, ModuleRef, TargetMachine

Compiled: TypeAlias = Callable[..., int]

TOO_SHORT = -(1 << 62)  # and the next ones: no kernel returns anything like it

# Functions compiled code may call: LLVM turns loops that fill or copy memory into these.
_LIBRARY = ("memcpy", "memmove", "memset")
# Numba's code for exceptions refers to these; kernels do not raise, so any address will do.
_FOR_EXCEPTIONS = ("numba_", "NRT_", "Py")


class ObjectCode(NamedTuple):
    """Machine code with one function in it, which is given a length behind every pointer."""

    symbol: str
    code: bytes
    unused: tuple[str, ...]  # functions it refers to and never calls
    checked: tuple[str, ...]  # arrays whose lengths it checks; it returns TOO_SHORT + k if checked[k] is too short


@cache
def target_name() -> str:
    """Return what machine code depends on: the processor and its features, and the version of the compiler."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features} llvmlite {llvmlite.__version__}"


def compile_function(function: Callable[..., int | None], signature: Sequence[str]) -> ObjectCode:
    """Compile a function of pointers ("uint8*") and integers ("int64") that returns an integer or nothing.

    The machine code takes the length of each array behind its pointer, and compares it with what the function states
    (`kernels.text.sizes.sized`) before anything else.
    """
    import llvmlite.binding as llvm
    from numba import cfunc, types

    kinds: list[object] = []
    for name in signature:
        known = getattr(types, name.removesuffix("*"))
        kinds += [types.CPointer(known), types.int64] if name.endswith("*") else [known]
    with _unoptimised():
        compiled = cfunc(types.int64(*kinds), nopython=True, error_model="numpy")(_checking(function, signature))
    module = _optimised(llvm.parse_assembly(compiled.inspect_llvm()), compiled.native_name)
    called = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    unknown = [name for name in called if name not in _LIBRARY and not name.startswith(_FOR_EXCEPTIONS)]
    if unknown:
        raise ValueError(f"{function.__qualname__}: expected a kernel that calls no library; got {unknown}")
    code, unused = _target_machine().emit_object(module), tuple(set(called) - set(_LIBRARY))
    return ObjectCode(compiled.native_name, code, unused, tuple(_least_sizes(function)))


def _checking(function: Callable[..., int | None], signature: Sequence[str]) -> Callable[..., int]:
    """Return a function with the lengths of arrays behind them, which checks them before it calls the given one.

    It is written as text, since numba compiles neither `*arguments` nor a loop over functions.
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
    exec("\n".join(lines), known)  # noqa: S102  # of names of our own parameters
    return cast("Callable[..., int]", known["checking"])


def _least_sizes(function: Callable[..., object]) -> dict[str, Callable[..., int]]:
    """What a function states, as Python has it: some of it is compiled for use in other kernels too."""
    stated = cast("dict[str, Callable[..., int]]", getattr(function, "least_sizes", {}))
    return {name: getattr(least, "py_func", least) for name, least in stated.items()}


@contextmanager
def _unoptimised() -> Iterator[None]:
    """Have numba leave code as it comes.

    It optimises every function, and what a function calls again with each of its callers: a kernel of thirty parts took
    three times as long to compile. Here the whole kernel is optimised, once, when it is complete.
    """
    from numba import config

    before = config.OPT
    config.OPT = type(before)(0)
    try:
        yield
    finally:
        config.OPT = before


def _optimised(module: "ModuleRef", symbol: str) -> "ModuleRef":
    import llvmlite.binding as llvm

    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"  # nobody else calls it, so it goes where it was put into its callers
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(_target_machine(), options)
    builder.getModulePassManager().run(module, builder)
    return module


def link(made: ObjectCode, signature: Sequence[str]) -> Compiled:
    """Put machine code where it can run. Called without the interpreter's lock, with integers.

    An array is two of them, its address and its length.
    """
    import llvmlite.binding as llvm

    library = ctypes.CDLL(None)
    for name in _LIBRARY:
        llvm.add_symbol(name, _address(library[name]))
    for name in made.unused:
        if llvm.address_of_symbol(name) is None:  # a symbol holds for all code of the process, numba's included
            llvm.add_symbol(name, _address(library.abort))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(made.code))
    engine.finalize_object()
    _engines().append(engine)
    kinds: list[type[ctypes.c_void_p] | type[ctypes.c_int64]] = []
    for name in signature:
        kinds += [ctypes.c_void_p, ctypes.c_int64] if name.endswith("*") else [ctypes.c_int64]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(engine.get_function_address(made.symbol))


def _address(function: object) -> int:
    return cast("int", ctypes.cast(cast("ctypes._FuncPointer", function), ctypes.c_void_p).value)


def _target_machine() -> "TargetMachine":
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()  # linking needs it too
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)


@cache
def _engines() -> list["ExecutionEngine"]:
    """The owners of linked code: what they own lives as long as the process."""
    return []
