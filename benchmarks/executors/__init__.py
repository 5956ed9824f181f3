"""What executors cost, side by side."""
