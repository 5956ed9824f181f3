"""Jobs of several steps behind one call. They build pipelines and run them; what a stage does is not decided here."""
