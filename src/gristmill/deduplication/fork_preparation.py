"""Preparations of every worker that deduplicates, done once in the process they are forked from: saves each 0.15 s."""

from gristmill.kernels.dedup.fold_table import fold_table
from gristmill.stages.compiled_kernel import prepare_kernels


def prepare_fork(*, folds: bool) -> None:
    """Import what takes long; with `folds`, make the table that texts are folded by."""
    import numpy.random  # noqa: F401  # for the permutations
    import pyarrow.compute  # noqa: F401  # what Arrow filters and takes rows with

    prepare_kernels("text")
    prepare_kernels("dedup")
    if folds:
        fold_table()
