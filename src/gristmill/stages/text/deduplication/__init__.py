"""Deduplication of text, under the paths users know."""
