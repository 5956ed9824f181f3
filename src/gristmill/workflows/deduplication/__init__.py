"""Deduplication in one call. Users find the workflows beside the stages too, under the paths they know."""
