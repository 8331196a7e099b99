"""The medium that can be rebuilt: pages, full text, links and the outbox, in one SQLite file."""
