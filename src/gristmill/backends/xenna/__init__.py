"""The executor that hands a plan to Cosmos-Xenna."""

from gristmill.backends.xenna.executor import XennaExecutor

__all__ = ["XennaExecutor"]
