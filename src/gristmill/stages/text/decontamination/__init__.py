"""Decontamination: documents that hold parts of a benchmark."""

from gristmill.stages.text.decontamination.decontaminate import Decontaminate

__all__ = ["Decontaminate"]
