"""Files that git did not take: a filter that fails, a name that it cannot hold.

Their versions are on disk and in no commit, so they are not forgotten: they stand in the index, are told in
`status`, and are tried again at each start and every hour (product.md, promise 5).
"""

import json
from collections.abc import Iterable, Sequence

from pcpd.history.versions import Refused
from pcpd.index import outbox, pages
from pcpd.memory.memory import Memory
from pcpd.sqlite import Transaction

META = "refused by git"
TOPIC = "refused"
AGAIN_S = 3600.0
MOST_TOLD = 3


class RefusedFiles:
    """What git refused, by file, with the reason. For the committing thread and the keeper."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known: dict[str, str] | None = None
        self._tried_at = 0.0

    def settle(self, tx: Transaction, tried: Iterable[str], refused: Sequence[Refused]) -> None:
        """Notes what a commit that tried these files refused of them."""
        known = self._loaded(tx)
        after = {file: why for file, why in known.items() if file not in set(tried)}
        after |= {each.file: each.reason for each in refused}
        if after != known:
            self._known = after
            pages.set_meta(tx, META, json.dumps(after))
            self._tell()

    def wait_s(self, now_s: float) -> float | None:
        """Seconds until the refused files are due again; None where there are none. Due at the start."""
        if self._known is None:
            return 0.0
        return max(0.0, self._tried_at + AGAIN_S - now_s) if self._known else None

    def mark_again(self, tx: Transaction, now_s: float) -> None:
        """Marks every refused file once more."""
        self._tried_at = now_s
        for file in self._loaded(tx):
            outbox.mark(tx, file, self._memory.clock.now_ns())
        self._tell()

    def _loaded(self, tx: Transaction) -> dict[str, str]:
        if self._known is None:
            noted = json.loads(pages.meta(tx, META) or "{}")
            self._known = {str(file): str(why) for file, why in noted.items()}
        return self._known

    def _tell(self) -> None:
        known = self._known or {}
        named = "; ".join(f"{file}: {why}" for file, why in sorted(known.items())[:MOST_TOLD])
        text = f"{len(known)} files cannot be kept in git ({named})" if known else None
        self._memory.health.notice(TOPIC, text)
