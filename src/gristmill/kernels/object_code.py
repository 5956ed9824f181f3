"""Kernels to machine code and back: what numba compiles, as bytes that a process without numba can run.

Loading numba takes 0.4 s and 60 MB in every process, llvmlite alone 0.08 s; so only the process that compiles a kernel
for the first time on a machine loads numba. There are no files here: keeping the bytes is the caller's business.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from llvmlite.binding import ExecutionEngine, ModuleRef, TargetMachine

Compiled: TypeAlias = Callable[..., int]

# What compiled code may call: LLVM turns loops that fill or copy memory into these.
_LIBRARY = ("memcpy", "memmove", "memset")
# Numba's code for exceptions refers to these; kernels do not raise, so any address will do.
_FOR_EXCEPTIONS = ("numba_", "NRT_", "Py")


class ObjectCode(NamedTuple):
    """Machine code with one function in it."""

    symbol: str
    code: bytes
    unused: tuple[str, ...]  # functions it refers to and never calls


@cache
def target_name() -> str:
    """Return what machine code depends on: the processor and its features, and the version of the compiler."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features} llvmlite {llvmlite.__version__}"


def compile_function(function: Callable[..., int | None], signature: Sequence[str]) -> ObjectCode:
    """Compile a function of pointers ("uint8*") and integers ("int64") that returns an integer or nothing."""
    import llvmlite.binding as llvm
    from numba import cfunc, types

    def kind(name: str) -> object:
        known = getattr(types, name.removesuffix("*"))
        return types.CPointer(known) if name.endswith("*") else known

    returned = types.int64 if function.__annotations__["return"] is int else types.void
    form = returned(*(kind(name) for name in signature))
    with _unoptimised():
        compiled = cfunc(form, nopython=True, error_model="numpy")(function)
    module = _optimised(llvm.parse_assembly(compiled.inspect_llvm()), compiled.native_name)
    called = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    unknown = [name for name in called if name not in _LIBRARY and not name.startswith(_FOR_EXCEPTIONS)]
    if unknown:
        raise ValueError(f"{function.__qualname__}: expected a kernel that calls no library; got {unknown}")
    return ObjectCode(compiled.native_name, _target_machine().emit_object(module), tuple(set(called) - set(_LIBRARY)))


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
    """Put machine code where it can run. Called without the interpreter's lock, with addresses and integers."""
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
    kinds = [ctypes.c_void_p if name.endswith("*") else ctypes.c_int64 for name in signature]
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
