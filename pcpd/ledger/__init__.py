"""The medium that cannot be rebuilt: audit trail, token hashes, keys, remembered writes."""
