"""Stages that number, cut and join documents. Stages that judge and change texts used to be here."""

import importlib

from gristmill.stages.text.modules.add_id import AddId
from gristmill.stages.text.modules.joiner import DocumentJoiner
from gristmill.stages.text.modules.splitter import DocumentSplitter

__all__ = ["AddId", "DocumentJoiner", "DocumentSplitter"]

_ELSEWHERE = {
    "Filter": "gristmill.stages.text.filters",
    "Modify": "gristmill.stages.text.modifiers",
    "Score": "gristmill.stages.text.filters",
    "ScoreFilter": "gristmill.stages.text.filters",
}


def __getattr__(name: str) -> object:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE[name]), name)
