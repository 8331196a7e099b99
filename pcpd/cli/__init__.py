"""The commands: arguments, printing, exit status."""
