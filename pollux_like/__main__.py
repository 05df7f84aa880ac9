"""`python -m pollux_like …`: the command, of this very Python."""

from pollux_like.cli import main

if __name__ == "__main__":
    main()
