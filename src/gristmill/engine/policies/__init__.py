"""One scheduling policy a file, each pure: from what is known to what should be."""
