"""A dataset in a browser, served by the dashboard's server."""
