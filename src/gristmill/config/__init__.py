"""Recipes: YAML to `Pipeline`, validated. Nothing here runs a pipeline."""
