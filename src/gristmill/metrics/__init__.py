"""Counters, snapshots and the run log. Knows no stage by name."""
