"""Doors under paths users know; nothing else lives here."""
