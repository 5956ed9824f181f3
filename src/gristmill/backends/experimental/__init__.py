"""Doors: executors under the paths they had in earlier versions of NeMo Curator."""
