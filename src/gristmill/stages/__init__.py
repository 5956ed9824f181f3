"""What users compose: stages, readers, writers, filters."""
