"""What a worker does, wherever it runs: the loop, the calls of its stages, the messages to the driver."""
