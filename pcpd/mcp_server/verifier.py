"""Whom a token proves, in the SDK's words, for what lasts longer than the request that the gate has checked."""

from functools import partial

from mcp.server.auth.provider import AccessToken, TokenVerifier

from pcpd.gate.threads import Threads
from pcpd.ledger import tokens
from pcpd.memory.memory import Memory


class Verifier(TokenVerifier):
    """Asks the ledger, on a thread: a token that it has not met since the last revocation takes 20 ms."""

    def __init__(self, memory: Memory, threads: Threads) -> None:
        self._memory, self._threads = memory, threads

    async def verify_token(self, token: str) -> AccessToken | None:
        """Gives the principal as the client that a token is good for, without the token; None for one that is not."""
        principal = await self._threads.run(partial(tokens.verify, self._memory.ledger, token))
        return None if principal is None else AccessToken(token="", client_id=principal, scopes=[])
