"""`python -m pcpd`: hands over to the command line."""

from pcpd.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
