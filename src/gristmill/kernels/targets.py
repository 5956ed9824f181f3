"""`Target`: a kind of processor that machine code is made for, and which kinds this machine is.

There are few kinds, so that code made when the package is built fits nearly every machine. No kind changes what a
kernel computes: nothing here allows a compiler to reorder arithmetic or to join a multiplication and an addition.
"""

import platform
import sys
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from llvmlite.binding import TargetMachine

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")


class Target(NamedTuple):
    """A kind of processor, by the names LLVM has for it; `needs` are features a machine of this kind must have.

    Code for a kind that `is_untried` has never run where the package is built: a machine of that kind tries it in a
    process that may crash, before it trusts it.
    """

    name: str
    triple: str
    cpu: str
    features: str = ""
    needs: tuple[str, ...] = ()
    is_untried: bool = False

    def machine(self) -> "TargetMachine":
        """Return what makes code for it, on any machine."""
        import llvmlite.binding as llvm

        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        found = llvm.Target.from_triple(self.triple)
        return found.create_target_machine(cpu=self.cpu, features=self.features, opt=3, jit=True)


# The best first.
_TARGETS = {
    ("linux", "x86_64"): (
        Target("linux-x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", needs=_V3),
        Target("linux-x86-64", "x86_64-unknown-linux-gnu", "x86-64"),
    ),
    ("linux", "aarch64"): (Target("linux-arm64", "aarch64-unknown-linux-gnu", "generic", is_untried=True),),
    ("darwin", "arm64"): (Target("macos-arm64", "arm64-apple-macosx11.0.0", "apple-m1", is_untried=True),),
    ("darwin", "x86_64"): (Target("macos-x86-64", "x86_64-apple-macosx10.15.0", "x86-64", is_untried=True),),
}


def all_targets() -> tuple[Target, ...]:
    """Return every kind of machine that the package carries code for."""
    return tuple(target for targets in _TARGETS.values() for target in targets)


def known_targets() -> tuple[Target, ...]:
    """Return the targets for a system and architecture like this one, whether or not this machine has all they need.

    Without loading llvmlite, which takes 0.08 s. Nothing for a kind of machine that is not listed.
    """
    return _TARGETS.get((sys.platform, platform.machine()), ())


@cache
def host_targets() -> tuple[Target, ...]:
    """Return the targets whose code this machine can run, the best first; if it is not listed, the machine itself."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    fitting = tuple(target for target in known_targets() if all(features.get(name) for name in target.needs))
    own = Target("this-machine", llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten())
    return fitting or (own,)


def host_machine() -> "TargetMachine":
    """Return what puts code in its place on this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()  # linking needs it too
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)
