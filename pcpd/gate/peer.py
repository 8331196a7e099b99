"""Who is at the other end of a Unix socket, by the kernel's word."""

import socket
import struct
import sys

_DARWIN_LOCAL, _DARWIN_PEERCRED, _DARWIN_BYTES = 0, 1, 76


def is_of(link: socket.socket, uid: int) -> bool:
    """Tells whether the process that connected is of the user `uid`. A link that cannot tell is not."""
    try:
        return peer_uid(link) == uid
    except (OSError, struct.error):
        return False


def peer_uid(link: socket.socket) -> int:
    """Gives the user of the process that connected, at that moment. Raises OSError where it has gone."""
    if sys.platform == "darwin":
        credentials = link.getsockopt(_DARWIN_LOCAL, _DARWIN_PEERCRED, _DARWIN_BYTES)
        return int(struct.unpack_from("=II", credentials)[1])
    return int(struct.unpack("=iII", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])
