"""What the executors share that use gristmill's own scheduler: the driver, its pool, what it measures and remembers."""
