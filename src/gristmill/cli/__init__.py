"""The command `gristmill`: one file per command. Everything for people goes to stderr, results to stdout."""
