"""Readers of documents."""

from gristmill.stages.text.io.reader.jsonl import JsonlReader, JsonlReaderStage

__all__ = ["JsonlReader", "JsonlReaderStage"]
