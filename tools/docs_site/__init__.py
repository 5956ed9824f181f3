"""The documentation site: pages put together from the repository and from the code itself."""
