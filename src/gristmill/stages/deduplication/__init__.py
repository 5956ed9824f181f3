"""Stages of deduplication. The workflows that put them together are in `gristmill.workflows`."""
