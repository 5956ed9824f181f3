"""Fuzzy duplicates: documents whose sets of shingles are similar enough."""
