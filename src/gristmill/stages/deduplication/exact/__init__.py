"""Exact duplicates: documents, or lines and paragraphs of them, with the same 128-bit hash."""
