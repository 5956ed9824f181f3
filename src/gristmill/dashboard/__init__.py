"""What a run directory shows to people: the report, the difference of two runs, the page in a browser."""
