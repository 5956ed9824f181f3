"""Texts made of texts, as in Nemotron-CC: five tasks, and what becomes of their answers."""
