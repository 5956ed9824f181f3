"""`ObjectBlocks`: large bodies of tasks as objects in Ray's store. The twin of `worker/shared_memory.py`.

Here as there a process knows a block by a number. Behind the number is an array (just packed, not in the store yet) or
a reference. An object belongs to the driver, which asked for it (`actor.py`), and lies on the machine that made it: it
outlives its worker, and is lost with its machine. `lose` is told when a machine is gone: otherwise Ray would look for
for ten seconds each.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gristmill.backends.ray_connection import check_connected
from gristmill.worker.wire import BlockLost

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from ray import ObjectRef

FETCH_S = 120.0  # for one body from another machine: 100 GB at 1 GB/s


class ObjectBlocks:
    """The blocks of one process."""

    def __init__(self) -> None:
        self._blocks: dict[int, NDArray[Any] | ObjectRef[Any]] = {}
        self._machines: dict[int, int] = {}  # by block, if known
        self._gone: set[int] = set()
        self._next = 0

    def add(self, block: "NDArray[Any] | ObjectRef[Any]", *, machine: int | None = None) -> int:
        """Hold a block that has come, made on `machine`; return its number."""
        number = self._next
        self._next = number + 1
        self._blocks[number] = block
        if machine is not None:
            self._machines[number] = machine
        return number

    def lose(self, machine: int) -> None:
        """A machine is gone: what lay there is not waited for."""
        self._gone.add(machine)

    def look(self, fd: int) -> "NDArray[Any] | ObjectRef[Any]":
        """What is behind a number, left where it is."""
        return self._blocks[fd]

    def create(self, size: int, fill: Callable[[memoryview], object]) -> int:
        """Pack into memory of this process; from there it goes to the store in one copy, when the driver asks."""
        import numpy as np

        array = np.empty(size, np.uint8)
        fill(array.data)
        return self.add(array)

    def store(self, fd: int) -> None:
        """Put a block of this process into the store, to be sent from here."""
        import ray

        self._blocks[fd] = ray.put(self._blocks[fd])

    def map_block(self, fd: int, size: int, *, writable: bool = False) -> memoryview:
        """The body, mapped from the store where that is possible and never writable; its number is used up."""
        del size, writable
        from ray import ObjectRef, get
        from ray.exceptions import GetTimeoutError, RayError

        block = self._blocks.pop(fd)
        is_gone = self._machines.pop(fd, None) in self._gone
        if isinstance(block, ObjectRef):
            check_connected()
            try:
                block = get(block, timeout=0 if is_gone else FETCH_S)  # a small one, or a copy, may be here
            except (GetTimeoutError, RayError) as error:
                raise BlockLost(f"the data of this task cannot be fetched: {str(error).splitlines()[0]}") from error
        return block.data

    def let_go(self, fd: int) -> None:
        """Forget a block; Ray frees it when nothing refers to it any more."""
        del self._blocks[fd]
        self._machines.pop(fd, None)
