"""The owner's clients: calls over its socket, starting an owner, and the stdio relay. Loads no framework."""
