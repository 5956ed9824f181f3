"""Passes over the UTF-8 bytes of documents, compiled by numba: one file per pass, each measures many things at once.

Every pass has one entry, a function of plain arrays and integers that `stages.compiled_kernel` compiles at the first
call. Documents are byte ranges `starts[d] .. stops[d]` of one array, so a pass runs on any selection of a column.
Text is valid UTF-8: readers see to that. Only modules of this package may import numba at the top, and nothing imports
them in a process that finds the compiled code on disk.
"""
