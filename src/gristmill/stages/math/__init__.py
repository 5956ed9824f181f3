"""Mathematics: what is for texts with formulas in them."""
