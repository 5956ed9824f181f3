"""Duplicates by meaning: embeddings, clusters, and who is too close to whom."""
