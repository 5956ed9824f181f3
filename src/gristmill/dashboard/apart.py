"""A question answered in a process of its own, which is gone afterwards with all it has loaded.

The server lives as long as anybody may look, and must stay small. Reading what a run has recorded loads Arrow, and
replaying its log loads the scheduler: together twice what the server is allowed.
"""

import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

Found = TypeVar("Found")
Given = ParamSpec("Given")


def apart(function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs) -> Found:
    """Return what the function returns, or raise what it raises. It is found by its name, so it must be a module's."""
    # Spawned and not forked: the server has threads, and locks they hold at that moment would be held for ever.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=_leave_interrupts_to_the_server) as pool:
        return pool.submit(function, *args, **kwargs).result()


def _leave_interrupts_to_the_server() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C reaches every process of the terminal
