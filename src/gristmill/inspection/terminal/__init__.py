"""A dataset in a terminal. The only place that imports textual."""
