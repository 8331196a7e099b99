"""Who calls over HTTP: an agent by its bearer token or, on the owner's Unix socket without one, the person.

A token always decides where one is given: whoever shows one acts with its rights and no more. The MCP endpoint
asks for one on the socket too. What is refused is written down, with the principal whose token was taken back.
"""

import re

from anyio import CapacityLimiter, to_thread

from pcpd.errors import Denied, PcpError
from pcpd.gate.knock import MCP_ROUTE, Knock
from pcpd.ledger import tokens
from pcpd.ledger.issued import Issued
from pcpd.memory import strangers
from pcpd.memory.brakes import PausedError
from pcpd.memory.memory import Caller, Memory
from pcpd.policy.decide import Principal

CHECKS = 2
"""Slow checks of tokens that may wait for a thread at a time, so that a flood of wrong ones delays no call."""

_BEARER = re.compile(r"Bearer +(\S+) *", re.ASCII | re.IGNORECASE)


class TokenRefusedError(Denied):
    """A token that opens nothing. `principal` is whose it was, where it was good once."""

    def __init__(self, principal: str) -> None:
        super().__init__(
            "token.refused",
            "this token is not valid, or not any more",
            hint="the person can make a new one with `pcpd connect` or `pcpd token create`",
        )
        self.principal = principal


class Credentials:
    """Tells who calls. Right tokens are known after their first check, which takes some 20 ms."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._checks, self._notes = CapacityLimiter(CHECKS), CapacityLimiter(1)

    async def caller(self, knock: Knock) -> Caller:
        """Gives who knocks. Raises `Denied` (`http.no-token`, `token.refused`, `access.paused`)."""
        if knock.authorization is None:
            if knock.is_local and knock.path != MCP_ROUTE:
                return Caller(Principal(self._memory.context.controller, is_controller=True), "cli")
            raise Denied(
                "http.no-token",
                "a token is needed",
                hint="`pcpd connect` gives a client one; send it as `Authorization: Bearer …`",
            )
        issued = await self._issued(knock.authorization)
        if issued is None or issued.revoked_at is not None:
            raise TokenRefusedError(issued.principal if issued else "")
        self._memory.brakes.check(issued.principal)
        return Caller(Principal(issued.principal), _channel(knock))

    async def note(self, knock: Knock, error: PcpError, caller: object | None) -> None:
        """Has a refusal written down, off the event loop. The person's own slips are not."""
        principal = error.principal if isinstance(error, TokenRefusedError | PausedError) else ""
        if isinstance(caller, Caller):
            if caller.principal.is_controller:
                return
            principal = caller.principal.name

        def noted() -> None:
            strangers.note(self._memory, error.code, principal=principal, channel=_channel(knock))

        await to_thread.run_sync(noted, limiter=self._notes)

    async def _issued(self, authorization: str) -> Issued | None:
        match = _BEARER.fullmatch(authorization)
        if match is None:
            return None
        known = tokens.remembered(self._memory.ledger, match[1])
        if known is not None:
            return known
        return await to_thread.run_sync(tokens.recognise, self._memory.ledger, match[1], limiter=self._checks)


def _channel(knock: Knock) -> str:
    return "mcp" if knock.path == MCP_ROUTE else "http"
