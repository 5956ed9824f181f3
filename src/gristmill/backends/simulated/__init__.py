"""A pretended cluster in virtual time, driven by the same scheduler that drives real processes."""
