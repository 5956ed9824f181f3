"""What a run is, on every executor: its directory, its books, its result, and what is said of it while it runs."""
