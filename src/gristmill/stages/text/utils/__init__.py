"""Doors: names that users know from here. Nothing else is kept in this package."""
