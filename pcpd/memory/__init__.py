"""The acts: the only place where the media meet and access is asked for."""
