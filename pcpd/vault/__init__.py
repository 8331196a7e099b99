"""The medium of files: lists, watches, reads and replaces the files of one vault."""
