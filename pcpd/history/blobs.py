"""Two things that every object store here says alike: a blob's id, and that an object is absent."""

import hashlib

from pcpd.errors import Unavailable


def blob_id(data: bytes, algorithm: str) -> str:
    """Gives git's id of a blob."""
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def absent(oid: str) -> Unavailable:
    """Gives the error for an object that is not here."""
    return Unavailable(
        "history.absent",
        f"object {oid} is not in the repository, as in a partial or damaged clone",
        hint="fetch it with `git fetch --refetch`, or look with `git fsck`",
    )
