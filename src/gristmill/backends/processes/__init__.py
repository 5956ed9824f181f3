"""Worker processes on one machine, and how to talk to them. Only the pool is imported by a driver."""
