"""Filters on the share of comments in a program: code without any is seldom good, and comments alone are not code."""

import ast
import io
import tokenize
import warnings
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError, nearest
from gristmill.stages.text.filters.heuristic.code.comment_syntax import LANGUAGES, find_comments
from gristmill.stages.text.judging.document_filter import Bounds, DocumentFilter

# What parsing a text that is not a program may raise; MemoryError is what CPython says about too deep nesting.
_NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError)


@dataclass
class PythonCommentToCodeFilter(DocumentFilter[float]):
    """Drop Python programs with too few or too many comments and docstrings; a text that is not Python scores 0."""

    measure: ClassVar[str] = "share of comments"
    score_type: ClassVar[pa.DataType] = pa.float64()

    min_comment_to_code_ratio: float = 0.01
    max_comment_to_code_ratio: float = 0.85

    def score_document(self, text: str) -> float:
        if not any(mark in text for mark in "#'\""):
            return 0.0  # nothing there that could be a comment or a docstring
        try:
            docstrings = "\n".join(_docstrings(text))
            comments = "".join(_comments(text)) if "#" in text else ""
        except _NOT_PYTHON:
            return 0.0
        return (len(docstrings) + len(comments)) / len(text)

    def bounds(self) -> Bounds:
        return self.min_comment_to_code_ratio, self.max_comment_to_code_ratio


def _docstrings(source: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # about the program that is judged, not about ours
        warnings.simplefilter("ignore", DeprecationWarning)
        tree = ast.parse(source)
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, holders)]
    return [docstring for docstring in found if docstring]


def _comments(source: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


@dataclass
class GeneralCommentToCodeFilter(DocumentFilter[float]):
    """Drop programs with too few or too many comments, comment marks not counted.

    `language` is a media type, such as text/x-c, text/x-java, text/x-go, application/javascript or text/x-shellscript.
    """

    measure: ClassVar[str] = "share of comments"
    score_type: ClassVar[pa.DataType] = pa.float64()

    language: str
    min_comment_to_code_ratio: float = 0.01
    max_comment_to_code_ratio: float = 0.85

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            known = ", ".join(LANGUAGES)
            hint = nearest(self.language, LANGUAGES)
            raise ConfigError(
                f"GeneralCommentToCodeFilter: expected language to be one of {known}; got {self.language!r}{hint}"
            )

    def score_document(self, text: str) -> float:
        return len(" ".join(find_comments(text, self.language))) / len(text) if text else 0.0

    def bounds(self) -> Bounds:
        return self.min_comment_to_code_ratio, self.max_comment_to_code_ratio
