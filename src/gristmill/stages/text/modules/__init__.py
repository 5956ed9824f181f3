"""Stages that number, cut and join documents."""

from gristmill.stages.text.modules.add_id import AddId
from gristmill.stages.text.modules.joiner import DocumentJoiner
from gristmill.stages.text.modules.splitter import DocumentSplitter

__all__ = ["AddId", "DocumentJoiner", "DocumentSplitter"]
