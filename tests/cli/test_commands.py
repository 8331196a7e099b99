"""Each command: what it asks the owner, and what it prints."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.cli.history import _page_at
from pcpd.cli.invocation import page_argument
from pcpd.cli.output import plain
from pcpd.errors import Usage
from tests.cli.conftest import Pcpd
from tests.client.conftest import Scene
from tests.client.fake_owner import Asked, FakeOwner, Reply, ok

WRITTEN = {"path": "notes/a", "version": "v2", "outcome": "replaced", "conflict_copy": None}


def asked(owner: FakeOwner) -> Asked:
    """The last request but those that every command makes."""
    return [each for each in owner.asked if each.route not in {"health", "work"}][-1]


def pages(request: Asked) -> Reply:
    """Seven pages, three at a time at most."""
    begin = int(request.query.get("cursor", 0))
    end = min(begin + min(int(request.query["limit"]), 3), 7)
    rows = [
        {
            "path": f"p{n}",
            "title": f"T{n}",
            "type": "semantic",
            "updated": "2026",
            "snippet": "a\nb  c",
            "score": 1.0,
        }
        for n in range(begin, end)
    ]
    cursor = str(end) if end < 7 else None
    return ok({"results": rows, "pages": rows, "total": 7, "cursor": cursor})


def test_search_prints_path_title_snippet_and_how_many(scene: Scene, pcpd: Pcpd) -> None:
    """The count goes to stderr: it is no result."""
    owner = scene.owner(http=pages)
    done = pcpd("search", "two words", "-not", "tag:x", "--limit", "2")
    assert done.text == "p0  T0\n    a b c\np1  T1\n    a b c\n"
    assert done.err == "2 of 7 pages. Go on with --cursor 2 or --all.\n"
    assert asked(owner).query == {"q": "two words -not tag:x", "limit": "2"}


def test_search_in_json_is_the_contract(scene: Scene, pcpd: Pcpd) -> None:
    """`results`, `total` and `cursor`, in one document."""
    scene.owner(http=pages)
    answer = pcpd("search", "x", "--json", "--limit", "1").json()
    assert set(answer) >= {"results", "total", "cursor"}
    assert set(answer["results"][0]) >= {"path", "title", "type", "snippet", "score"}


@pytest.mark.parametrize("command", [("search", "x"), ("list",), ("recent",)])
def test_all_follows_the_cursor_to_the_very_end(scene: Scene, pcpd: Pcpd, command: tuple[str, ...]) -> None:
    """Seven of seven, in one document."""
    scene.owner(http=pages)
    answer = pcpd(*command, "--all", "--json").json()
    rows = answer["results" if command[0] == "search" else "pages"]
    assert [row["path"] for row in rows] == [f"p{n}" for n in range(7)]
    assert answer["cursor"] is None
    assert pcpd(*command, "--all").err == "7 pages.\n"
    assert pcpd(*command, "--cursor", "6").text.startswith("p6")


def test_lists_have_tabs_between_cells_where_no_person_reads_them(scene: Scene, pcpd: Pcpd) -> None:
    """For cut, sort and awk."""
    owner = scene.owner(http=pages)
    assert pcpd("list", "notes/", "--limit", "1").text == "p0\tT0\tsemantic\t2026\n"
    assert asked(owner).query["folder"] == "notes"


def test_read_gives_the_bytes_and_nothing_else(scene: Scene, pcpd: Pcpd) -> None:
    """Whatever they are."""
    scene.owner(http=lambda request: ok(b"\xef\xbb\xbfa\r\n\xff\x00", {"ETag": '"v"'}))
    done = pcpd("read", "notes/a.md")
    assert (done.status, done.out, done.err) == (0, b"\xef\xbb\xbfa\r\n\xff\x00", "")
    assert set(pcpd("read", "a", "--json").json()) == {"path", "version", "base64"}


def test_read_in_json_names_the_version(scene: Scene, pcpd: Pcpd) -> None:
    """It is what --if-version takes."""
    scene.owner(http=lambda request: ok("ä".encode(), {"ETag": '"v"'}))
    assert pcpd("read", "a.md", "--json").json() == {"path": "a", "version": "v", "text": "ä"}


def test_write_sends_the_bytes_as_they_are(scene: Scene, pcpd: Pcpd, tmp_path: Path) -> None:
    """From stdin or a file; the conditions go along."""
    owner = scene.owner(http=lambda request: ok(WRITTEN))
    data = b"\xef\xbb\xbfone\r\ntwo"
    assert pcpd("write", "notes/ä b.md", stdin=data).err == "Replaced: notes/a\n"
    assert (asked(owner).method, asked(owner).route, asked(owner).body) == ("PUT", "pages/notes/ä b", data)
    assert asked(owner).query == {}
    (tmp_path / "f").write_bytes(b"file")
    pcpd("write", "a", "--file", str(tmp_path / "f"), "--overwrite", "--if-version", "v1")
    assert (asked(owner).body, asked(owner).query, asked(owner).headers["if-match"]) == (
        b"file",
        {"overwrite": "1"},
        '"v1"',
    )
    assert pcpd("write", "a", "--file", str(tmp_path / "none")).status == 1


def test_edits_are_sent_together(scene: Scene, pcpd: Pcpd) -> None:
    """Keys with YAML values, text by heading, by its words, at both ends, and from stdin."""
    owner = scene.owner(http=lambda request: ok(WRITTEN))
    done = pcpd(
        "edit", "a", "--set", "importance=0.5", "--set", 'n="3"', "--unset", "x", "--add", "tags=t", "--append", "-",
        "--prepend", "top", "--section", "Plan", "new", "--replace", "old", "neu", "--if-version", "v", stdin=b"end",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert asked(owner).headers["if-match"] == '"v"'
    assert asked(owner).json() == {
        "edits": [
            {"op": "set", "assignment": "importance=0.5"},
            {"op": "set", "assignment": 'n="3"'},
            {"op": "remove", "where": "x", "value": None},
            {"op": "append_item", "assignment": "tags=t"},
            {"op": "replace_section", "where": "Plan", "value": "new"},
            {"op": "replace_text", "where": "old", "value": "neu"},
            {"op": "prepend", "where": "", "value": "top"},
            {"op": "append", "where": "", "value": "end"},
        ]
    }


def test_edit_without_an_edit_needs_a_terminal(scene: Scene, pcpd: Pcpd) -> None:
    """In a script it is a mistake."""
    scene.owner()
    assert pcpd("edit", "a").status == 2


def test_conflict_copies_are_told(scene: Scene, pcpd: Pcpd) -> None:
    """The person must know where the other text is."""
    scene.owner(http=lambda request: ok({**WRITTEN, "conflict_copy": "notes/a (conflict).md"}))
    assert "notes/a (conflict).md" in pcpd("write", "a").err


def test_move_remove_and_restore_name_their_pages(scene: Scene, pcpd: Pcpd) -> None:
    """Each is one request."""
    owner = scene.owner(http=lambda request: ok({**WRITTEN, "outcome": "moved"}))
    assert pcpd("move", "a.md", "b/c.md").err == "Moved: notes/a\n"
    broken = [f"n{number}" for number in range(12)]
    owner.http = lambda request: ok({**WRITTEN, "outcome": "moved", "broken_links": broken})
    assert pcpd("move", "a.md", "b/c.md").err.endswith(
        "Links on 12 pages do not lead to it any more: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, …\n"
    )
    assert asked(owner).json() == {"path": "a", "to": "b/c"}
    assert pcpd("remove", "a", "--if-version", "v", "--json").json()["outcome"] == "moved"
    assert (asked(owner).method, asked(owner).headers["if-match"]) == ("DELETE", '"v"')
    pcpd("restore", "a@b.md@HEAD~2")
    assert asked(owner).json() == {"path": "a@b", "rev": "HEAD~2"}


def test_log_lists_versions(scene: Scene, pcpd: Pcpd) -> None:
    """Of a page or of the vault, with how to go on."""
    version = {"rev": "0123456789abcdef", "at": "2026", "author": "Sam", "principal": "agent:c", "subject": "s\tt",
               "file": "a.md", "change": "modified"}  # fmt: skip
    owner = scene.owner(http=lambda request: ok({"versions": [version]}))
    done = pcpd("log", "a.md", "--limit", "1", "--before", "HEAD")
    assert done.text == "0123456789ab\t2026\tagent:c\tmodified\ta.md\ts\\tt\n"
    assert "--before 0123456789abcdef" in done.err
    assert (asked(owner).route, asked(owner).query) == ("history/a", {"limit": "1", "before": "HEAD"})
    pcpd("log")
    assert asked(owner).route == "history"


def test_show_and_diff_print_what_the_owner_gives(scene: Scene, pcpd: Pcpd) -> None:
    """Bytes, as they are."""
    owner = scene.owner(http=lambda request: ok(b"-\xff\n"))
    assert pcpd("show", "a.md@abc").out == b"-\xff\n"
    assert (asked(owner).route, asked(owner).query) == ("show/a", {"rev": "abc"})
    assert pcpd("diff", "a", "--old", "x").out == b"-\xff\n"
    assert asked(owner).query == {"path": "a", "old": "x"}
    assert pcpd("diff", "--json").json()["diff"] == "-\ufffd\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a@r", ("a", "r")),
        ("a@b@r", ("a@b", "r")),
        ("a@HEAD@{1}", ("a", "HEAD@{1}")),
        ("a@HEAD~1", ("a", "HEAD~1")),
    ],
)
def test_version_is_what_follows_the_last_at_sign(text: str, parts: tuple[str, str]) -> None:
    """Names may hold one."""
    assert _page_at(text) == parts


@pytest.mark.parametrize("text", ["a", "@", "a@", "@r", "@{1}"])
def test_page_without_a_version_is_wrong_usage(text: str) -> None:
    """And says how to write it."""
    with pytest.raises(Usage):
        _page_at(text)


def test_links_show_their_direction(scene: Scene, pcpd: Pcpd) -> None:
    """And what nothing answers to."""
    link = {"kind": "wiki", "target": "B", "rel": "", "heading": "H", "alias": "", "line": 1}
    answer = {
        "outgoing": [
            {"source": "a", "target": "x/b", "link": link},
            {"source": "a", "target": None, "link": {**link, "target": "C", "rel": "about", "heading": ""}},
            {
                "source": "a",
                "target": None,
                "file": "img/p.png",
                "link": {**link, "target": "p.png", "heading": ""},
            },
        ],
        "backlinks": [{"source": "d", "target": "a", "link": link}],
        "neighbours": {
            "pages": [{"path": "d", "title": "D", "distance": 1}, {"path": "e", "title": "E", "distance": 2}],
            "complete": True,
        },
    }
    scene.owner(http=lambda request: ok(answer))
    assert pcpd("links", "a", "--depth", "2").text.splitlines() == [
        "to\tx/b\twiki B#H",
        "unresolved\tC\tabout C",
        "to\timg/p.png\twiki p.png",
        "from\td\twiki B#H",
        "at 2\te\tE",
    ]


def test_token_is_shown_alone_on_stdout(scene: Scene, pcpd: Pcpd) -> None:
    """So that `$(pcpd token create …)` is the token."""
    owner = scene.owner(http=lambda request: ok({"token": "pcp_x", "id": "tok_1"}))
    done = pcpd("token", "create", "--principal", "agent:c")
    assert done.text == "pcp_x\n"
    assert "tok_1" in done.err
    assert asked(owner).json() == {"principal": "agent:c"}
    assert pcpd("token", "create", "--principal", "agent:c", "--json").json() == {
        "token": "pcp_x",
        "id": "tok_1",
    }


def test_grant_sends_what_was_said_and_no_more(scene: Scene, pcpd: Pcpd) -> None:
    """Defaults are the owner's."""
    grant = {"rights": ["read", "write"], "partitions": ["p"], "categories": ["semantic", "profile"]}
    answer = {"granted": True, "grant": grant, "warnings": [], "grants": [], "tokens": []}
    owner = scene.owner(http=lambda request: ok(answer))
    done = pcpd("grant", "agent:c", "--rights", "read, write")
    assert done.err == "Granted to agent:c: read, write. Where: p. On: semantic, profile.\n"
    assert asked(owner).json() == {
        "principal": "agent:c",
        "rights": ["read", "write"],
        "sensitivity": "normal",
    }
    pcpd("grant", "agent:c", "--rights", "read", "--partitions", "p,q", "--categories", "profile", "--sensitivity",
         "sensitive", "--until", "2027-01-01")  # fmt: skip
    assert asked(owner).json()["partitions"] == ["p", "q"]
    assert asked(owner).json()["until"] == "2027-01-01"
    assert pcpd("grant", "agent:c").status == 2
    assert pcpd("grant").status == 0
    assert pcpd("token", "list").status == 0


def test_revoke_takes_a_principal_or_one_token(scene: Scene, pcpd: Pcpd) -> None:
    """And says what was taken back."""
    owner = scene.owner(http=lambda request: ok({"grants": 2, "tokens": 1}))
    assert pcpd("revoke", "agent:c").err == "Taken back: 2 grants, 1 token.\n"
    assert asked(owner).json() == {"principal": "agent:c"}
    pcpd("token", "revoke", "tok_1")
    assert asked(owner).json() == {"token": "tok_1"}


@pytest.mark.parametrize(("is_well", "status"), [(True, 0), (False, 1)])
def test_doctor_fails_when_the_index_differs(scene: Scene, pcpd: Pcpd, *, is_well: bool, status: int) -> None:
    """Scripts look at the status."""
    problems = [{"file": "a.md", "code": "page.yaml", "message": "it is odd", "line": 3}]
    differences = [] if is_well else [{"what": "missing", "table": "pages", "name": "a"}]
    answer = {
        "ok": is_well,
        "differences": differences,
        "problems": problems,
        "clashes": [["b", "B"]],
        "notices": [],
    }
    owner = scene.owner(http=lambda request: ok(answer))
    done = pcpd("doctor", "--deep")
    assert done.status == status
    assert "a.md:3  it is odd" in done.text
    assert "clash: b, B" in done.text
    assert ("difference: missing pages a" in done.text) is not is_well
    said = "1 problem in 1 file; 1 clash; the index equals one made anew." if is_well else "pcpd rebuild"
    assert said in done.err
    assert asked(owner).json() == {"deep": True}
    assert pcpd("doctor", "--json").json() == answer


def test_status_is_answered_while_the_vault_is_read(scene: Scene, pcpd: Pcpd) -> None:
    """It is what one asks then."""
    answer = {
        "vault": {"root": "/v", "id": "ctx"}, "pages": 3, "problems": 1, "index": {"in_step": False, "proved_at": None},
        "owner": {"pid": 7, "version": "1", "url": "http://x"}, "history": {"kind": "own", "waiting": 2},
        "lost": 2, "left_out": [["big.bin", "too-large"]], "notices": [{"topic": "copy", "text": "it is one"}],
    }  # fmt: skip
    scene.owner(http=lambda request: ok(answer), is_ready=False)
    text = pcpd("status").text
    for said in (
        "process 7",
        "3 pages, 1 with problems",
        "not in step",
        "big.bin (too large)",
        "copy: it is one",
        "pcpd accept",
    ):
        assert said in text
    assert pcpd("status", "--json").json() == answer


def test_accept_and_rebuild_say_what_came_of_it(scene: Scene, pcpd: Pcpd) -> None:
    """In words, or in the owner's own."""
    owner = scene.owner(http=lambda request: ok({"accepted": 3, "pages": 4}))
    assert pcpd("accept").err == "Accepted: 3 pages gone.\n"
    owner.http = lambda request: ok({"accepted": 0, "removed": 0})
    assert pcpd("accept").err == "There was nothing to accept.\n"
    owner.http = lambda request: ok({"accepted": 3, "pages": 4})
    assert pcpd("accept", "--copy").status == 0
    assert asked(owner).json()["copy"] is True
    assert pcpd("rebuild").err == "Rebuilt the index of 4 pages.\n"


def test_second_owner_is_told_who_owns_the_vault(scene: Scene, pcpd: Pcpd) -> None:
    """Status 3, also for one that a client would start."""
    owner = scene.owner()
    for more in ((), ("--idle-exit", "10m")):
        done = pcpd("run", *more)
        assert done.status == 3
        assert f"process {id(owner)} owns" in done.err
    handovers = [each for each in owner.asked if each.route == "handover"]
    assert len(handovers) == 1


@pytest.mark.parametrize("text", ["10", "1.5h", "90s", "10m"])
def test_durations(text: str, pcpd: Pcpd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bare numbers are seconds."""
    heard: list[Any] = []

    def run(*_: object, idle_exit_s: float, **__: object) -> int:
        heard.append(idle_exit_s)
        return 0

    monkeypatch.setattr("pcpd.daemon.run", run)
    assert pcpd("run", "--idle-exit", text).status == 0
    assert heard == [{"10": 10, "1.5h": 5400, "90s": 90, "10m": 600}[text]]
    assert pcpd("run", "--idle-exit", "soon").status == 2


def test_page_may_be_named_by_where_it_is(scene: Scene, pcpd: Pcpd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute, or relative to the current folder when it begins with a dot; else from the vault's root."""
    root = scene.root
    (root / "notes").mkdir()
    monkeypatch.chdir(root / "notes")
    assert page_argument(root, "./a.md") == "notes/a"
    assert page_argument(root, "../b") == "b"
    assert page_argument(root, f"{root}/notes/a.md") == "notes/a"
    assert page_argument(root, "notes/a.md") == "notes/a"
    assert page_argument(root, "a") == "a"
    assert page_argument(root, "../../x") == "../../x"


@given(st.text())
def test_shown_text_is_one_line_that_steers_nothing(text: str) -> None:
    """No control character, no change of direction."""
    shown = plain(text)
    assert all(ord(letter) >= 32 and not 127 <= ord(letter) < 160 for letter in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def test_config_says_where_each_value_comes_from(
    scene: Scene, pcpd: Pcpd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And which folders are used."""
    monkeypatch.setenv("PCPD_PORT", "7")
    shown = pcpd("config", "--json").json()
    assert shown["settings"]["port"] == {"value": 7, "from": "PCPD_PORT"}
    assert shown["settings"]["watch"] == {"value": "auto", "from": "default"}
    assert shown["folders"]["vault"]["path"] == str(scene.root)
    assert "PCPD_PORT" in pcpd("config").text
    monkeypatch.setenv("PCPD_PORT", "seven")
    assert pcpd("config").status == 2


@pytest.mark.needs("bash")
def test_completion_of_bash_completes(scene: Scene, pcpd: Pcpd, tmp_path: Path) -> None:
    """The script is one that bash takes, and pcpd answers it."""
    script = pcpd("config", "completion", "bash").out
    (tmp_path / "script").write_bytes(script)
    subprocess.run(["bash", "-n", tmp_path / "script"], check=True)
    env = {**scene.env, "_PCPD_COMPLETE": "bash_complete", "COMP_WORDS": "pcpd sea", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pcpd"],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "search" in done.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_of_other_shells_can_be_had(pcpd: Pcpd, shell: str) -> None:
    """Click makes them."""
    assert b"_PCPD_COMPLETE" in pcpd("config", "completion", shell).out


def test_entry_for_mcp_clients_has_absolute_paths(scene: Scene, pcpd: Pcpd) -> None:
    """They start it without a shell, from anywhere."""
    done = pcpd("mcp", "config", "--principal", "agent:c", "--token", "pcp_x")
    entry = done.json()["mcpServers"]["pcpd"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-5:] == ["--vault", str(scene.root), "mcp", "--principal", "agent:c"]
    assert entry["env"]["PCPD_TOKEN"] == "pcp_x"
    assert entry["env"]["XDG_STATE_HOME"] == scene.env["XDG_STATE_HOME"]
    assert "pcpd grant agent:c" in done.err
    assert "pcpd token create" in json.dumps(pcpd("mcp", "config", "--principal", "agent:c").json())


def test_entry_for_mcp_clients_can_bring_its_token(scene: Scene, pcpd: Pcpd) -> None:
    """In one step, so that the secret need not be copied."""
    answer: dict[str, Any] = {"token": "pcp_new", "id": "tok_1", "grants": []}
    scene.owner(http=lambda request: ok(answer))
    done = pcpd("mcp", "config", "--principal", "agent:c", "--new-token")
    assert done.json()["mcpServers"]["pcpd"]["env"]["PCPD_TOKEN"] == "pcp_new"
    assert "pcpd grant agent:c" in done.err
    answer["grants"] = [{"principal": "agent:c"}]
    assert pcpd("mcp", "config", "--principal", "agent:c", "--new-token").err == ""
    # Consent was given to `agent:c`: a version of it is somebody else (policy.principals).
    assert "pcpd grant agent:c/2" in pcpd("mcp", "config", "--principal", "agent:c/2", "--new-token").err
    assert pcpd("mcp", "config", "--principal", "agent:c", "--new-token", "--token", "x").status == 2
