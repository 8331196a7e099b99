"""The medium of access.yaml: loads it, keeps the last good one, edits it, notices changes."""
