"""Where things are on a page: boxes in, order out."""
