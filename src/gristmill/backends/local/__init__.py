"""The executor on one machine: worker processes, shared memory, no server."""

from gristmill.backends.local.executor import LocalExecutor

__all__ = ["LocalExecutor"]
