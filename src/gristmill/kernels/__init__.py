"""Arrays to arrays: pure functions on numpy and Arrow data."""
