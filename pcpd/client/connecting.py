"""Connects a client: its entry, its token and its grant come together, and go together.

The grant comes last, so that a kill at any step leaves nothing granted or all of it; what fails on the way is
taken back. Before the entry is written, a receipt says what there will be to take back.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pcpd.client import config_file, entries, plans, programs
from pcpd.client.config_file import ConfigFile
from pcpd.client.entries import Trace
from pcpd.client.plans import Ask, Plan
from pcpd.client.receipts import Receipt, Receipts
from pcpd.errors import Conflict, NotFound, PcpError

TRIES = 3
"""Edits of a file that its client writes at the same time."""


@dataclass(frozen=True, slots=True)
class Connected:
    """What connecting did: the token's id, the grant, and where the file's old bytes are kept, if it was there."""

    token: str
    grant: Mapping[str, Any]
    backup: Path | None


@dataclass(slots=True)
class Undone:
    """What was taken back, and whether the entry went out of the file.

    `is_gone`: so did the file, which connect had made. `trouble`: why the file could not be edited; all else is
    taken back even so.
    """

    config: str
    principal: str
    tokens: int = 0
    grants: int = 0
    is_out: bool = False
    is_gone: bool = False
    trouble: PcpError | None = None


def connect(ask: Ask, agreed: Plan) -> Connected:
    """Carries a plan out. Raises what a step is refused with; nothing is granted then, and the file is as before.

    Where only the end of a former connection failed, the new one stands, and connecting again ends the former.
    """
    with agreed.receipts.alone():
        return _Connect(ask, agreed).run()


def undo(ask: Ask, receipts: Receipts, receipt: Receipt, root: Path) -> Undone:
    """Takes back what a connect gave, then its entry out of the client's file.

    A grant that another client's connection was agreed to as well stays, and is then that one's to take back.
    """
    done = Undone(receipt.config, receipt.principal)
    with receipts.alone():
        for grant in receipt.grants:
            if not _hand_over(receipts, receipt, grant):
                done.grants += int(ask("POST", "grants/take-back", grant)["grants"])
        for token in receipt.tokens:
            done.tokens += _revoked(ask, token)
        try:
            done.is_out, done.is_gone = _out(receipts, receipt, root)
        except PcpError as error:
            done.trouble = error
        else:
            receipts.drop(receipt)
    return done


def foresee_undo(ask: Ask, receipts: Receipts, receipt: Receipt, root: Path) -> Undone:
    """Tells what `undo` would take back, and changes nothing."""
    done = Undone(receipt.config, receipt.principal)
    present = ask("GET", "grants", None)["grants"]
    good = {token for row in ask("GET", "principals", None)["principals"] for token in row["tokens"]}
    done.grants = sum(each in present and receipts.heir(receipt, each) is None for each in receipt.grants)
    done.tokens = sum(each in good for each in receipt.tokens)
    try:
        _, text = _without(receipt, root)
    except PcpError as error:
        done.trouble = error
    else:
        done.is_out, done.is_gone = text is not None, text == "" and receipt.made_file
    return done


class _Connect:
    """The steps of one connect, and the way back."""

    def __init__(self, ask: Ask, agreed: Plan) -> None:
        self._ask, self._plan, self._wanted = ask, agreed, agreed.wanted
        self._receipts, self._former = agreed.receipts, agreed.former
        self._label = f"connect {agreed.wanted.program.name}"
        self._before, self._after, self._trace = agreed.file, "", Trace("", "", "")

    def run(self) -> Connected:
        """Takes every step, or none."""
        wanted = self._wanted
        made = self._ask("POST", "tokens", {"principal": wanted.principal, "label": self._label})
        receipt = self._receipt(str(made["id"]))
        try:
            backup, receipt = self._write(str(made["token"]), receipt)
            given = self._ask("POST", "grants", wanted.grant)
        except BaseException:
            self._take_back(receipt)
            raise
        self._end_former(receipt)
        return Connected(str(made["id"]), given["grant"], backup)

    def _own(self) -> tuple[Mapping[str, Any], ...]:
        """Gives the grant as ours to take back, unless the person had given the same one themselves."""
        grant, former = self._plan.preview["grant"], self._former
        was_ours = former is not None and grant in former.grants
        return () if self._plan.preview["is_there"] and not was_ours else (grant,)

    def _receipt(self, token: str) -> Receipt:
        wanted, former, own = self._wanted, self._former, self._own()
        return Receipt(
            client=wanted.program.name,
            config=str(wanted.file),
            key=wanted.program.key,
            name=self._plan.name,
            principal=wanted.principal,
            tokens=(token, *(former.tokens if former else ())),
            grants=(*own, *(each for each in (former.grants if former else ()) if each not in own)),
            agreed=self._plan.preview["grant"],
            trace=self._trace,
            made_file=self._before.data is None,
            made_folders=former.made_folders if former else (),
        )

    def _write(self, token: str, receipt: Receipt) -> tuple[Path | None, Receipt]:
        """Keeps the old bytes and the receipt, then writes the entry; again where the client wrote meanwhile."""
        for tries_left in reversed(range(TRIES)):
            self._before = file = config_file.read(self._wanted.file)
            plans.check_name(self._wanted, file, self._plan.name)
            self._after, self._trace, former = file.edited(lambda text: self._edited(text, token))
            trace, made_file = self._trace, file.data is None
            if former is not None:
                trace, made_file = former.trace, former.made_file
            folders = dict.fromkeys((*config_file.missing_folders(file), *receipt.made_folders))
            receipt = replace(receipt, trace=trace, made_file=made_file, made_folders=tuple(folders))
            backup = None if file.data is None else self._receipts.back_up(receipt.stem, file.data)
            self._receipts.save(receipt)
            try:
                closed = replace(file, mode=file.mode & 0o700) if self._plan.closes else file
                config_file.replace(closed, self._after)
            except Conflict:
                if not tries_left:
                    raise
            else:
                break
        return backup, receipt

    def _edited(self, text: str, token: str) -> tuple[str, Trace, Receipt | None]:
        """Gives the text with our entry, the edit's trace, and the former receipt if it was its entry's place."""
        key, name, former = self._wanted.program.key, self._plan.name, self._former
        there = {each.name for each in entries.entries(text, key)}
        if former is not None and former.name != name:
            text = entries.take_out(text, key, former.name, former.trace)
        text, trace = entries.put(text, key, name, self._wanted.entry(token))
        return text, trace, former if former is not None and former.name == name and name in there else None

    def _end_former(self, receipt: Receipt) -> None:
        """Takes back what an earlier connect gave and this one did not, and tokens that a killed one left."""
        own = self._own()
        for grant in receipt.grants:
            if grant not in own and not _hand_over(self._receipts, receipt, grant):
                self._ask("POST", "grants/take-back", grant)
        others = [each for each in self._receipts.all() if each.stem != receipt.stem]
        known = {receipt.tokens[0], *(token for each in others for token in each.tokens)}
        for row in self._ask("GET", "tokens", None)["tokens"]:
            if row["label"] == self._label and not row["revoked_at"] and row["id"] not in known:
                _revoked(self._ask, row["id"])
        self._receipts.save(replace(receipt, tokens=receipt.tokens[:1], grants=own))

    def _take_back(self, receipt: Receipt) -> None:
        """Undoes the steps so far. What cannot be undone stays in the receipt, for `--undo`."""
        try:
            for grant in () if self._plan.preview["is_there"] else self._own():
                self._ask("POST", "grants/take-back", grant)
            _revoked(self._ask, receipt.tokens[0])
            self._put_back(receipt)
        except (PcpError, OSError):
            return
        if self._former is None:
            self._receipts.drop(receipt)
        else:
            self._receipts.save(self._former)

    def _put_back(self, receipt: Receipt) -> None:
        """Gives the file its bytes back; where others changed it since, takes only our entry out."""
        now, before = config_file.read(self._wanted.file), self._before
        if now.data == before.data:
            return
        text = before.text()
        if now.text() != self._after:
            text = now.edited(lambda said: entries.take_out(said, receipt.key, receipt.name, self._trace))
        if before.data is None and not text:
            config_file.remove(now)
            config_file.remove_folders(receipt.made_folders)
        else:
            config_file.replace(now if before.data is None else replace(now, mode=before.mode), text)


def _hand_over(receipts: Receipts, receipt: Receipt, grant: Mapping[str, Any]) -> bool:
    """Hands a grant over to another connection that the person agreed to with just that grant; tells whether."""
    heir = receipts.heir(receipt, grant)
    if heir is not None and grant not in heir.grants:
        receipts.save(replace(heir, grants=(*heir.grants, grant)))
    return heir is not None


def _without(receipt: Receipt, root: Path) -> tuple[ConfigFile, str | None]:
    """Gives the file, and its text without the receipt's entry: None where that is not there or not ours any more."""
    file = config_file.read(Path(receipt.config))
    there = file.edited(lambda text: entries.entries(text, receipt.key))
    value = next((each.value for each in there if each.name == receipt.name), None)
    if not programs.is_for(value, root) and programs.token_id(value) not in receipt.tokens:
        return file, None
    return file, file.edited(lambda said: entries.take_out(said, receipt.key, receipt.name, receipt.trace))


def _out(receipts: Receipts, receipt: Receipt, root: Path) -> tuple[bool, bool]:
    """Takes the receipt's entry out of the file, if it is still ours; tells whether it was, and the file is gone."""
    file, text = _without(receipt, root)
    if text is None:
        return False, False
    receipts.back_up(receipt.stem, file.data or b"")
    is_gone = receipt.made_file and not text
    if is_gone:
        config_file.remove(file)
        config_file.remove_folders(receipt.made_folders)
    else:
        config_file.replace(file, text)
    return True, is_gone


def _revoked(ask: Ask, token: str) -> int:
    """Revokes a token; gives how many were good until now. One that is not known any more is none."""
    with suppress(NotFound):
        return int(ask("POST", "revoke", {"token": token})["tokens"])
    return 0
