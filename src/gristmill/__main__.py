"""`python -m gristmill` is the command `gristmill`, also where the command is not on the PATH."""

from gristmill.cli.main import main

if __name__ == "__main__":
    main()
