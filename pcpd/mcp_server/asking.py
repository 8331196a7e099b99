"""How a client's request becomes an act: who asks now, on which thread it runs, and what a failure says.

Tools, resources, prompts, completion and change notices all go this way, over every transport.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pcpd.errors import Conflict, Denied, Invalid, NotFound, PcpError, Usage, as_told_to_agents
from pcpd.gate.threads import Threads
from pcpd.memory import account
from pcpd.memory.memory import Caller, Memory

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
Who = Callable[[Context], Caller]
Turn = Callable[[Context], asyncio.Semaphore]

KEY = "pcpd/key"
"""The idempotency key that the relay puts into a call's `_meta`."""
KEY_LIMIT = 200
CLIENT_LIMIT = 100
TEXT_LIMIT = 1_000
"""Characters of an error's message: what was sent may be quoted in it, and may be large."""
AT_A_TIME = 4
"""Acts of one connection that run at a time; others wait, and other connections do not."""

NOT_FOUND = -32002
"""What versions with a handshake answer for a resource that is not there; later ones say `INVALID_PARAMS`."""

log = logging.getLogger("pcpd")


class Asking:
    """Runs the acts that one connection asks for, or a door whose requests stand alone.

    `who` is asked at each act: a revoked token ends at once. `first` is who greeted, for a connection: the audit
    trail names them when their token is good no more. `threads` are the door's; `turn` gives what bounds the acts that
    run at a time, where that is not the connection.
    """

    def __init__(
        self,
        memory: Memory,
        who: Who,
        threads: Threads,
        *,
        first: Caller | None = None,
        turn: Turn | None = None,
    ) -> None:
        mine = asyncio.Semaphore(AT_A_TIME)
        self.memory, self._who, self._threads, self._first = memory, who, threads, first
        self._turn = turn or (lambda _ctx: mine)

    async def run(self, ctx: Context, name: str, act: Callable[[Memory, Caller], T]) -> T:
        """Gives what an act gives, run as who asks now. A refusal before the act is audited under `name`."""

        def run() -> T:
            try:
                with account.one_call():
                    return act(self.memory, _known(ctx, self._who(ctx)))
            except PcpError as error:
                if not account.is_accounted(error):
                    account.note_refusal(self.memory, self._first or self._who(ctx), name, error)
                raise

        turn = self._turn(ctx)
        await turn.acquire()
        # Who cancels waits no longer, but has this turn until the act ends.
        return await self._threads.run(run, then=turn.release)

    async def answer(self, ctx: Context, name: str, act: Callable[[Memory, Caller], T]) -> T:
        """Gives what an act gives; a failure becomes the protocol's error, with our code and hint in its data."""
        try:
            return await self.run(ctx, name, act)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001  (the door's edge: the client gets an error, whatever it was)
            raise as_error(told(error), ctx.protocol_version) from None


def told(error: Exception) -> PcpError:
    """Gives an error as agents may know it: not where on the person's disk it happened."""
    if isinstance(error, OSError):
        log.error("a request over MCP failed: %s", error)
    elif not isinstance(error, PcpError):
        log.exception("a request over MCP met a fault", exc_info=error)
    return as_told_to_agents(error)


def _known(ctx: Context, caller: Caller) -> Caller:
    """Adds what the connection says of itself: the client's name, and the call's idempotency key."""
    meta: dict[str, Any] = dict(ctx.meta or {})
    key = meta.get(KEY)
    client = ctx.session.client_params
    name = client.client_info.name[:CLIENT_LIMIT] if client is not None else ""
    if isinstance(key, str) and len(key) > KEY_LIMIT:
        raise Usage("tool.argument", f"the call's key is longer than {KEY_LIMIT} characters")
    return replace(caller, client=name, key=key if isinstance(key, str) else "")


def as_error(error: PcpError, version: str) -> MCPError:
    """Gives an error as the protocol's, with our code and hint in its data."""
    message, hint = error.message[:TEXT_LIMIT], error.hint[:TEXT_LIMIT]
    return MCPError(_number(error, version), message, {"code": error.code, "hint": hint})


def _number(error: PcpError, version: str) -> int:
    """Gives JSON-RPC's number for an error. Not -32000: on a relay that one says that the owner ended."""
    if isinstance(error, NotFound):
        return types.INVALID_PARAMS if version in MODERN_PROTOCOL_VERSIONS else NOT_FOUND
    if isinstance(error, Usage | Invalid | Conflict):
        return types.INVALID_PARAMS
    return types.INVALID_REQUEST if isinstance(error, Denied) else types.INTERNAL_ERROR
