"""Models: where their files are, how they are loaded, what they are given and what they answer."""
