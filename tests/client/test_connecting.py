"""A client is connected whole or not at all, whatever fails and whenever it is killed; and it is taken back whole."""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pcpd.client import config_file, connecting, plans, programs
from pcpd.client.http import problem
from pcpd.client.plans import Plan, Wanted
from pcpd.client.receipts import Receipts
from pcpd.client.survey import survey
from pcpd.errors import Broken, Conflict, Invalid, PcpError
from pcpd.memory import consent
from tests.doors import Doors, doors, make_doors
from tests.vaults import make_opened

__all__ = ["doors", "make_doors", "make_opened"]

CURSOR = programs.PROGRAMS[2]
OTHERS = b'{\n  // mine\n  "mcpServers": {\n    "x": {"command": "y"} // note\n  }\n}\n'
GRANT = {"principal": "agent:cursor", "rights": ["read", "propose"]}
TOKEN = re.compile(rb"pcp_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")


class Desk:
    """A person's home with a client in it, before the owner of one vault."""

    def __init__(self, doors: Doors, home: Path) -> None:
        self.doors, self.home = doors, home
        self.file = home / ".cursor" / "mcp.json"
        self.file.parent.mkdir(parents=True)
        self.asked: list[str] = []
        self.on_ask: Callable[[str], None] = lambda _route: None

    @property
    def root(self) -> Path:
        """The vault."""
        return self.doors.opened.root

    @property
    def receipts(self) -> Receipts:
        """What connects left."""
        return Receipts(self.doors.opened.memory.place.state)

    def ask(self, method: str, route: str, body: Mapping[str, object] | None) -> dict[str, Any]:
        """Asks the owner, as the command line does."""
        self.on_ask(route)
        self.asked.append(route)
        answer = self.doors.vault(method, route, body=body)
        if answer.status >= 300:
            raise problem(answer.status, answer.data)
        said: dict[str, Any] = json.loads(answer.data)
        return said

    def plan(self, **how: Any) -> Plan:
        """Looks at what connecting Cursor would do."""
        grant = {**GRANT, **how.pop("grant", {})}
        wanted = {"program": CURSOR, "root": self.root, "command": ["/opt/pcpd"], "file": self.file}
        return plans.plan(
            self.ask,
            Wanted(**{**wanted, "grant": grant, "variables": lambda token: {"PCPD_TOKEN": token}, **how}),
        )

    def connect(self, **how: Any) -> connecting.Connected:
        """Connects it."""
        return connecting.connect(self.ask, self.plan(**how))

    def undo(self) -> connecting.Undone:
        """Takes the only connection back."""
        (receipt,) = self.receipts.all()
        return connecting.undo(self.ask, self.receipts, receipt, self.root)

    def entry(self, name: str = "pcpd") -> Any:
        """The entry in the file."""
        text = re.sub(r"//.*", "", self.file.read_text())
        return json.loads(text)["mcpServers"].get(name)

    def token(self) -> str:
        """The id of the token in the file, which must be a whole one."""
        (token,) = TOKEN.findall(self.file.read_bytes())
        return f"tok_{token[4:12].decode()}"

    def grants(self) -> list[dict[str, Any]]:
        """All grants in force."""
        found: Any = consent.grants(self.doors.opened.memory)["grants"]
        return list(found)

    def good(self) -> set[str]:
        """The ids of good tokens."""
        rows: Any = consent.tokens(self.doors.opened.memory)["tokens"]
        return {row["id"] for row in rows if row["revoked_at"] is None}


@pytest.fixture
def desk(doors: Doors, tmp_path: Path) -> Desk:
    """A home with Cursor in it."""
    return Desk(doors, tmp_path / "home")


def test_connecting_puts_one_entry_one_token_and_one_grant(desk: Desk) -> None:
    """And nothing else: the file's other bytes are what they were."""
    desk.file.write_bytes(OTHERS)
    done = desk.connect()
    assert desk.entry()["args"] == ["--vault", str(desk.root), "mcp", "--principal", "agent:cursor"]
    assert desk.good() == {desk.token()} == {done.token}
    assert [each["rights"] for each in desk.grants()] == [("read", "propose")]
    assert desk.file.read_text().startswith(
        '{\n  // mine\n  "mcpServers": {\n    "x": {"command": "y"}, // note\n'
    )
    assert done.backup is not None
    assert done.backup.read_bytes() == OTHERS
    for kept in (done.backup, *desk.receipts.folder.glob("*.json")):
        assert kept.stat().st_mode & 0o777 == 0o600
        assert not TOKEN.search(kept.read_bytes())
    assert {each.stat().st_mode & 0o777 for each in (desk.receipts.folder, done.backup.parent)} == {0o700}


def test_undo_takes_back_what_connect_gave_and_gives_the_file_its_bytes(desk: Desk) -> None:
    """What the person had given by hand stays."""
    desk.file.write_bytes(OTHERS)
    memory = desk.doors.opened.memory
    mine = consent.create_token(memory, "agent:cursor")
    consent.grant(memory, consent.Wish("agent:cursor", ["read"], partitions=["work"]))
    desk.connect()
    done = desk.undo()
    assert (done.tokens, done.grants, done.is_out, done.trouble) == (1, 1, True, None)
    assert desk.file.read_bytes() == OTHERS
    assert desk.good() == {mine["id"]}
    assert [each["partitions"] for each in desk.grants()] == [("work",)]
    assert desk.receipts.all() == []


def test_a_grant_that_was_there_before_is_not_taken_back(desk: Desk) -> None:
    """The person gave it themselves."""
    consent.grant(desk.doors.opened.memory, consent.Wish("agent:cursor", ["read", "propose"]))
    desk.connect()
    desk.connect()
    assert desk.undo().grants == 0
    assert len(desk.grants()) == 1


def test_a_file_that_connect_made_goes_again(desk: Desk) -> None:
    """A new one is for its owner alone."""
    desk.connect()
    assert desk.file.stat().st_mode & 0o777 == 0o600
    desk.undo()
    assert not desk.file.exists()


def test_undo_after_others_wrote_takes_only_our_entry_out(desk: Desk) -> None:
    """A new server came, and the file that we made is not ours alone any more."""
    desk.connect()
    text = desk.file.read_text().replace('"pcpd": {', '"z": {},\n    "pcpd": {')
    desk.file.write_text(text)
    desk.undo()
    assert json.loads(desk.file.read_text()) == {"mcpServers": {"z": {}}}


def test_connecting_again_makes_a_new_token_and_revokes_the_old_one(desk: Desk) -> None:
    """One entry, one grant; undo leads back to the very beginning."""
    desk.file.write_bytes(OTHERS)
    first = desk.connect()
    second = desk.connect()
    assert first.token != second.token
    assert desk.good() == {second.token} == {desk.token()}
    assert len(desk.grants()) == 1
    desk.undo()
    assert desk.file.read_bytes() == OTHERS
    assert (desk.good(), desk.grants()) == (set(), [])


def test_connecting_again_with_less_leaves_less(desk: Desk) -> None:
    """The wider grant of the first time goes when the narrower one is there."""
    desk.connect(grant={"rights": ["read", "write"]})
    desk.connect(grant={"rights": ["read"]})
    assert [each["rights"] for each in desk.grants()] == [("read",)]


def test_connecting_again_as_somebody_else_leaves_nobody_behind(desk: Desk) -> None:
    """Another principal, another name in the file: the first ones are gone."""
    desk.file.write_bytes(OTHERS)
    desk.connect()
    desk.connect(grant={"principal": "agent:work"}, name="notes")
    assert desk.entry() is None
    assert desk.entry("notes")
    assert [each["principal"] for each in desk.grants()] == ["agent:work"]
    assert len(desk.good()) == 1
    desk.undo()
    assert json.loads(re.sub(r"//.*", "", desk.file.read_text())) == {"mcpServers": {"x": {"command": "y"}}}


def test_a_failure_under_another_name_gives_the_first_entry_back(desk: Desk) -> None:
    """The file has its bytes again, and the first connection works on."""
    first = desk.connect()
    before = desk.file.read_bytes()

    def refuse(route: str) -> None:
        if route == "grants":
            raise Broken("owner.system", "no")

    desk.on_ask = refuse
    with pytest.raises(Broken):
        desk.connect(name="notes")
    assert desk.file.read_bytes() == before
    assert desk.good() == {first.token}


def test_two_clients_of_one_principal_do_not_take_each_other_s_grant(desk: Desk) -> None:
    """The one that goes first hands it over; the last one takes it back."""
    other = desk.home / "other.json"
    desk.connect()
    desk.connect(file=other)
    assert len(desk.grants()) == 1
    (first,) = desk.receipts.of("cursor", str(desk.file))
    (second,) = desk.receipts.of("cursor", str(other))
    for left, receipt in ((1, first), (0, second)):
        (present,) = desk.receipts.of("cursor", receipt.config)
        connecting.undo(desk.ask, desk.receipts, present, desk.root)
        assert len(desk.grants()) == left
        assert len(desk.good()) == left


def test_an_entry_that_was_made_by_hand_comes_back(desk: Desk) -> None:
    """It is replaced, not doubled; undo puts it back."""
    by_hand = json.dumps(
        {"mcpServers": {"notes": {"command": "pcpd", "args": ["--vault", str(desk.root), "mcp"]}}}
    )
    desk.file.write_text(by_hand)
    plan = desk.plan()
    assert (plan.name, plan.is_replaced) == ("notes", True)
    connecting.connect(desk.ask, plan)
    desk.undo()
    assert desk.file.read_text() == by_hand


def test_another_vault_s_entry_keeps_its_name(desk: Desk) -> None:
    """Two vaults in one client: the second one's entry is called after its folder; a chosen name may not be taken."""
    taken = '{"mcpServers": {"pcpd": {"command": "pcpd", "args": ["--vault", "/elsewhere", "mcp"]}}}'
    desk.file.write_text(taken)
    assert desk.plan().name == "pcpd-vault"
    with pytest.raises(Conflict) as refused:
        desk.plan(name="pcpd")
    assert refused.value.code == "connect.taken"
    desk.file.write_text(taken.replace('"pcpd": {', '"pcpd-vault": {}, "pcpd": {'))
    with pytest.raises(Conflict):
        desk.plan()


def test_a_link_stays_a_link(desk: Desk) -> None:
    """Dotfiles lie elsewhere: the file behind the link is edited, and keeps its mode."""
    real = desk.home / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_bytes(OTHERS)
    real.chmod(0o640)
    desk.file.symlink_to(real)
    desk.connect()
    assert desk.file.is_symlink()
    assert TOKEN.search(real.read_bytes())
    assert real.stat().st_mode & 0o777 == 0o640
    desk.undo()
    assert desk.file.is_symlink()
    assert (real.read_bytes(), real.stat().st_mode & 0o777) == (OTHERS, 0o640)


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"{\n  'a': 1}", "connect.not-json", "line 2, column 3"),
        (
            b'{"mcpServers": []}',
            "connect.not-json",
            "line 1, column 16: the value of mcpServers must be an object",
        ),
        (b'{"a":\n"\xff"}', "connect.not-json", "line 2: this is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "connect.not-json", "line 1"),
    ],
)
def test_a_file_that_is_no_json_is_refused_before_anything_is_given(
    desk: Desk, data: bytes, code: str, said: str
) -> None:
    """It stays as it is, with the place named."""
    desk.file.write_bytes(data)
    with pytest.raises(PcpError) as refused:
        desk.plan()
    assert refused.value.code == code
    assert said in refused.value.message
    assert (desk.file.read_bytes(), desk.good(), desk.grants()) == (data, set(), [])


def test_what_is_no_file_of_this_person_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a FIFO, a loop of links, a file beyond all measure, one that is read only."""
    seen = {}
    for name in ("folder", "fifo", "loop", "big", "locked"):
        path = desk.home / name
        if name == "folder":
            path.mkdir()
        elif name == "fifo":
            os.mkfifo(path)
        elif name == "loop":
            path.symlink_to(path)
        else:
            path.write_bytes(b"{}")
            path.chmod(0o400 if name == "locked" else 0o600)
        monkeypatch.setattr(config_file, "SIZE_LIMIT", 1 if name == "big" else 100)
        with pytest.raises(PcpError) as refused:
            desk.connect(file=path)
        seen[name] = refused.value.code
    assert seen == {
        "folder": "connect.no-file",
        "fifo": "connect.no-file",
        "loop": "connect.unreadable",
        "big": "connect.too-large",
        "locked": "connect.unwritable",
    }
    assert (desk.good(), desk.grants(), desk.receipts.all()) == (set(), [], [])


def test_another_user_s_file_is_not_made_ours(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaced by root, it would belong to root, and its client could read it no more."""
    desk.file.write_bytes(OTHERS)
    monkeypatch.setattr(os, "geteuid", lambda: desk.file.stat().st_uid + 1)
    with pytest.raises(Broken) as refused:
        config_file.read(desk.file)
    assert refused.value.code == "connect.foreign"


def test_a_path_that_no_configuration_can_hold_is_refused(desk: Desk) -> None:
    """JSON has no bytes that are not UTF-8."""
    with pytest.raises(Invalid) as refused:
        desk.plan(command=["/opt/\udcff/pcpd"])
    assert refused.value.code == "connect.path"


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture
def steps(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names each step of connecting as it is taken; `desk.on_ask` may end it there."""
    taken: list[str] = []

    def stepped(name: str, act: Any) -> Any:
        def step(*given: Any) -> Any:
            desk.on_ask(name)
            return act(*given)

        return step

    for owner, name in (
        (config_file, "replace"),
        (config_file, "remove"),
        (Receipts, "save"),
        (Receipts, "back_up"),
        (Receipts, "drop"),
    ):
        monkeypatch.setattr(owner, name, stepped(name, getattr(owner, name)))
    desk.on_ask = taken.append
    return taken


def stop_at(desk: Desk, number: int, error: BaseException, *, for_good: bool) -> None:
    """Has the step of that number fail, and all that come after it when the process is gone."""
    count = 0

    def step(_name: str) -> None:
        nonlocal count
        count += 1
        if count == number or (for_good and count > number):
            raise error

    desk.on_ask = step


@pytest.mark.parametrize("is_again", [False, True], ids=["first", "again"])
def test_a_kill_at_any_step_leaves_nothing_granted_or_a_working_whole(
    desk: Desk, steps: list[str], is_again: bool
) -> None:
    """And connecting again, or taking back, ends where it would have ended without the kill."""
    desk.file.write_bytes(OTHERS)
    desk.connect()
    count = len(steps)
    desk.undo()
    for number in range(1, 2 * count + 10):
        desk.on_ask = lambda _name: None
        if is_again:
            desk.connect()
        stop_at(desk, number, Killed(), for_good=True)
        is_over = False
        try:
            desk.connect()
            is_over = True
        except Killed:
            pass
        desk.on_ask = lambda _name: None
        is_whole = desk.grants() != [] and desk.entry() is not None and desk.token() in desk.good()
        assert is_whole or (desk.grants() == [] and not is_again), number
        if number % 2 or is_over:
            desk.connect()
            assert desk.good() == {desk.token()}, number
            assert len(desk.grants()) == 1, number
        for receipt in desk.receipts.all():
            connecting.undo(desk.ask, desk.receipts, receipt, desk.root)
        assert desk.grants() == [], number
        assert desk.file.read_bytes() == OTHERS, number
        if is_over:
            break
    assert is_over


@pytest.mark.parametrize("is_again", [False, True], ids=["first", "again"])
def test_a_failure_up_to_the_grant_takes_all_back(desk: Desk, steps: list[str], is_again: bool) -> None:
    """Grant, token, receipt and file are as before; where only the former token stays, connecting again ends it."""
    desk.file.write_bytes(OTHERS)
    if is_again:
        desk.connect()

    def state() -> Any:
        return desk.file.read_bytes(), desk.good(), desk.grants(), desk.receipts.all()

    before, outcomes = state(), []
    for number in range(1, 40):
        stop_at(desk, number, Broken("owner.system", "no"), for_good=False)
        try:
            desk.connect()
        except Broken:
            desk.on_ask = lambda _name: None
            is_back = state() == before
            outcomes.append(is_back)
            if not is_back:
                assert desk.token() in desk.good()
                desk.connect()
                assert desk.good() == {desk.token()}
                before = state()
        else:
            break
    assert outcomes == sorted(outcomes, reverse=True)
    assert outcomes.count(True) == 7
    assert outcomes.count(False) == 3  # after the first of these it is a connection that is made again


def test_a_client_that_writes_its_file_at_the_same_time_loses_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit is made again on what is there then; after three times it is refused and taken back."""
    desk.file.write_bytes(b'{"n": 0}')
    replace, count = config_file.replace, 0

    def busy(file: config_file.ConfigFile, text: str) -> config_file.ConfigFile:
        nonlocal count
        if count:
            count -= 1
            desk.file.write_text(f'{{"n": {count}}}')
        return replace(file, text)

    monkeypatch.setattr(config_file, "replace", busy)
    count = 2
    desk.connect()
    assert json.loads(desk.file.read_text())["n"] == 0
    assert desk.token() in desk.good()
    desk.undo()
    assert desk.file.read_text() == '{"n": 0}'
    count = 3
    with pytest.raises(Conflict) as refused:
        desk.connect()
    assert refused.value.code == "connect.changed"
    assert (desk.file.read_text(), desk.good(), desk.grants()) == ('{"n": 0}', set(), [])


def test_a_server_that_took_the_name_meanwhile_is_not_replaced(desk: Desk) -> None:
    """Between the question and the answer."""
    planned = desk.plan()
    taken = '{"mcpServers": {"pcpd": {"command": "x"}}}'
    desk.file.write_text(taken)
    with pytest.raises(Conflict) as refused:
        connecting.connect(desk.ask, planned)
    assert refused.value.code == "connect.taken"
    assert (desk.file.read_text(), desk.good(), desk.grants()) == (taken, set(), [])


def test_the_agent_is_out_even_where_its_file_cannot_be_edited(desk: Desk) -> None:
    """Grant and token first; what is left of it can be done later."""
    desk.file.write_bytes(OTHERS)
    desk.connect()
    whole = desk.file.read_bytes()
    desk.file.write_bytes(b"{ broken")
    done = desk.undo()
    assert done.trouble is not None
    assert done.trouble.code == "connect.not-json"
    assert (desk.good(), desk.grants()) == (set(), [])
    desk.file.write_bytes(whole)
    assert desk.undo().is_out
    assert desk.file.read_bytes() == OTHERS


def test_two_connects_at_a_time_do_not_mix(desk: Desk) -> None:
    """The second one is told."""
    with desk.receipts.alone(), pytest.raises(Conflict) as refused:
        desk.connect()
    assert refused.value.code == "connect.busy"
    assert desk.good() == set()


def test_old_bytes_are_kept_three_times_at_most(desk: Desk) -> None:
    """They may hold other servers' tokens."""
    desk.file.write_bytes(OTHERS)
    for _ in range(5):
        desk.connect()
    assert len(list((desk.receipts.folder / "backups").iterdir())) == 3


def test_the_survey_tells_who_is_connected_and_what_is_missing(desk: Desk) -> None:
    """Connected, without grant, without a good token, without an entry, with a file that cannot be read."""
    env = {"HOME": str(desk.home), "XDG_CONFIG_HOME": str(desk.home / ".config")}
    elsewhere = desk.home / "project.json"

    def state(path: Path) -> tuple[str, str | None]:
        rows = {row.config: row for row in survey(desk.ask, desk.root, env)}
        return rows[str(path)].state, rows[str(path)].principal

    assert state(desk.file) == ("not connected", None)
    desk.connect()
    desk.connect(file=elsewhere, grant={"principal": "agent:p"})
    assert state(desk.file) == ("connected", "agent:cursor")
    assert state(elsewhere) == ("connected", "agent:p")
    desk.doors.opened.memory.access.revoke("agent:p")
    assert state(elsewhere) == ("no grant", "agent:p")
    consent.revoke(desk.doors.opened.memory, principal="agent:cursor", token=None)
    assert state(desk.file) == ("token revoked", "agent:cursor")
    desk.file.write_text("{}")
    assert state(desk.file) == ("entry gone", "agent:cursor")
    desk.file.write_text("nonsense")
    assert state(desk.file) == ("unreadable", "agent:cursor")
    rows = survey(desk.ask, desk.root, env)
    assert any("line 1, column 1" in str(row.problem) for row in rows)
    assert {row.client: row.installed for row in rows}["cursor"]
    assert not {row.client: row.installed for row in rows}["zed"]


def test_what_a_person_should_know_of_the_file_is_said(desk: Desk) -> None:
    """In the vault, in a repository, readable by others, with notes that the client does not take, with a `$`."""
    env = {"HOME": str(desk.home)}
    assert plans.cautions(desk.plan(), env) == []
    desk.file.write_bytes(OTHERS)
    desk.file.chmod(0o644)
    (desk.home / ".git").mkdir()
    said = plans.cautions(desk.plan(program=programs.PROGRAMS[0]), env)
    assert [
        bool(re.search(word, " ".join(said))) for word in ("installed", "repository", "chmod 600", "comments")
    ] == [True] * 4
    inside = desk.root / ".cursor" / "mcp.json"
    assert "lies in the vault" in " ".join(plans.cautions(desk.plan(file=inside), env))
    assert "variable" in " ".join(plans.cautions(desk.plan(command=["/opt/${x}/pcpd"]), env))
