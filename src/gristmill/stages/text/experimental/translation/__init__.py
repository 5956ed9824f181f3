"""Translation of documents, piece by piece, with marks for its quality."""
