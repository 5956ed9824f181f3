"""Mathematics: models that grade documents about it."""
