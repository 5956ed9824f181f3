"""Arithmetic of deduplication: tokens, shingles, MinHash, sets, union-find. Modules that need numba import it at the
top, so they are imported where they are used."""
