"""Stages whose parameters may still change between minor versions."""
