"""Executors: they turn the engine's commands into work, and work into events."""
