"""Semantic duplicates: documents whose embeddings are close. Users find the workflow here."""
