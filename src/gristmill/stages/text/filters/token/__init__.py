"""Filters that count tokens."""

from gristmill.stages.text.filters.token.token_count import TokenCountFilter

__all__ = ["TokenCountFilter"]
