"""A classifier of the kind fastText trains (Joulin et al. 2016): words and pairs of words, averaged, then two classes.

The arithmetic is fastText's, so that a model made here is a file fastText reads. Two things differ on purpose: training
is one sequence of plain additions and multiplications, with an exponential of our own, and gives the same bits every
time; and a text that holds fastText's mark for labels, or its word for the end of a line, is read as any other.
"""
