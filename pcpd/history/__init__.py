"""The medium of versions: git. Nothing outside this room knows git; it never writes the work tree."""
