"""Text filters: three stages, and the filter objects they are given. How they work is in `judging`.

The filters themselves are below: `heuristic`, `heuristic.code`, `fasttext`, `token`, `histogram`. Code for earlier
versions of NeMo Curator imports them from here, so each is found when it is asked for.
"""

import importlib

from gristmill.stages.text.judging.document_filter import DocumentFilter
from gristmill.stages.text.judging.stages import Filter, Score, ScoreFilter

__all__ = ["DocumentFilter", "Filter", "Score", "ScoreFilter"]

_BELOW = ("heuristic", "heuristic.code", "fasttext", "token", "histogram")


def __getattr__(name: str) -> object:
    for below in _BELOW if name[:1].isupper() else ():
        module = importlib.import_module(f"{__name__}.{below}")
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
