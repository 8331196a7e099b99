"""Our commits need nothing of the person's: no hook, key, name, editor, home, owner, nor git itself."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from pcpd.errors import Broken, Unavailable
from pcpd.history import layout as layouts
from pcpd.history.program import Program
from pcpd.history.versions import Change
from tests.history.people import NOW, History, Opener, Person
from tests.waiting import until

HOOKS = (
    "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "reference-transaction", "post-index-change",
    "pre-auto-gc", "post-rewrite", "post-checkout", "fsmonitor-watchman",
)  # fmt: skip


def _everything(history: History, person: Person) -> None:
    """One of each: few files, many, aside, reading, packing."""
    history.save(("page.md", b"few\n"))
    history.save(*((f"n/{number}.md", b"many\n") for number in range(40)))
    history.save(*((f"many/{number}.md", b"very many\n") for number in range(1100)))
    history.commit(Change("page.md", data=b"aside\n"), aside=True)
    history.repository.log("page.md")
    history.repository.diff("page.md", "HEAD~1")
    history.repository.diff(None, "HEAD~1")
    history.repository.show("page.md", "HEAD")
    history.repository.maintain()


@pytest.mark.parametrize("configured", ["in the repository", "by core.hooksPath"])
def test_no_hook_ever_runs(adopted: History, person: Person, tmp_path: Path, configured: str) -> None:
    """Each of them would leave a trace and fail."""
    trace = tmp_path / "trace"
    hooks = person.folder / ".git" / "hooks"
    if configured == "by core.hooksPath":
        hooks = tmp_path / "hooks"
        person.git("config", "--global", "core.hooksPath", str(hooks))
    person.git("config", "core.fsmonitor", str(hooks / "fsmonitor-watchman"))
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {trace}\nexit 1\n")
        hook.chmod(0o755)
    _everything(adopted, person)
    assert not trace.exists()


def test_no_signing_no_editor_no_pager_no_prompt(adopted: History, person: Person, tmp_path: Path) -> None:
    """Each program that the person configured would leave a trace."""
    trace = tmp_path / "trace"
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\necho $0 $@ >> {trace}\nexit 1\n")
    tool.chmod(0o755)
    for key in (
        "core.editor", "sequence.editor", "core.pager", "gpg.program", "gpg.ssh.program", "core.askPass",
        "diff.external", "credential.helper", "core.sshCommand", "diff.md.textconv", "diff.md.command", "pager.log",
    ):  # fmt: skip
        person.git("config", key, str(tool))
    for key in ("commit.gpgSign", "tag.gpgSign", "log.showSignature", "push.gpgSign"):
        person.git("config", key, "true")
    (person.folder / ".git" / "info" / "attributes").write_text("*.md diff=md\n")
    signed = person.git("cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n\n", 1
    )
    person.git(
        "update-ref", "HEAD", person.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed).strip()
    )
    _everything(adopted, person)
    assert not trace.exists()
    assert "gpgsig" not in person.git("cat-file", "commit", "HEAD")


@pytest.mark.parametrize("missing", ["HOME", "everything"])
def test_no_name_and_no_home_are_needed(
    person: Person, open_history: Opener, env: Mapping[str, str], missing: str
) -> None:
    """`user.useConfigOnly` and all."""
    kept = {"PATH": env["PATH"]} if missing == "HOME" else {}
    history = open_history(person.folder, create=True, environment=kept)
    person.git("config", "user.useConfigOnly", "true")
    _everything(history, person)
    assert set(person.git("log", "--format=%an <%ae> %cn").splitlines()) == {"pcpd <pcpd@localhost> pcpd"}


def test_what_the_caller_says_of_repositories_does_not_leak_in(
    adopted: History, person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: Mapping[str, str]
) -> None:
    """As when an owner is started from a git hook."""
    elsewhere = tmp_path / "elsewhere"
    for name, value in {
        "GIT_DIR": elsewhere, "GIT_WORK_TREE": elsewhere, "GIT_INDEX_FILE": elsewhere / "index",
        "GIT_OBJECT_DIRECTORY": elsewhere, "GIT_QUARANTINE_PATH": elsewhere, "GIT_NAMESPACE": "x",
        "GIT_CONFIG_PARAMETERS": "'core.hooksPath=/x'", "GIT_TRACE": tmp_path / "trace", "GIT_PREFIX": "sub/",
        "GIT_AUTHOR_NAME": "Somebody", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z", "GIT_EXTERNAL_DIFF": "false",
        "LC_ALL": "de_DE.UTF-8",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    _everything(adopted, person)
    assert not elsewhere.exists()
    assert not (tmp_path / "trace").exists()
    assert person.git("log", "-1", "--format=%an %ct").split() == ["pcpd", str(int(NOW.timestamp()))]


def test_pathspec_magic_and_options_in_names_are_names(adopted: History, person: Person) -> None:
    """A file called `:(exclude)*`, `*.md`, `--all`, `-p` is that file."""
    hostile = [":(exclude)*", "*.md", "--all", "-p", ":top", "@{-1}", "HEAD"]
    adopted.save(*((name, b"one\n") for name in hostile))
    done = adopted.save(*((name, b"two\n") for name in hostile))
    for name in hostile:
        assert [version.file for version in adopted.repository.log(name)] == [name, name]
        assert adopted.repository.diff(name, "HEAD~1").count("\n+two") == 1
        assert adopted.repository.show(name, str(done.rev)) == b"two\n"
    assert person.status() == ""


def test_without_git_versions_are_kept_and_the_cure_is_named(person: Person, open_history: Opener) -> None:
    """libgit2 commits and shows; what needs the program says so."""
    history = open_history(person.folder, create=True, environment={"PATH": "/nowhere"})
    first = history.save(("page.md", b"one\n"))
    history.save(*((f"n/{number}.md", b"many\n") for number in range(40)))
    assert history.repository.show("page.md", str(first.rev)) == b"one\n"
    assert "not installed" in history.repository.state().notice
    with pytest.raises(Unavailable) as missing:
        history.repository.log("page.md")
    assert missing.value.code == "history.git-missing"
    assert "install git" in missing.value.hint
    assert not history.repository.maintain()
    refused = history.save((os.fsdecode(b"\xff.md"), b"x"), ("other.md", b"x")).refused
    assert [each.file for each in refused] == [os.fsdecode(b"\xff.md")]
    assert person.status().splitlines() == ['?? "\\377.md"']
    history.put(".gitattributes", b"* eol=lf\n")
    assert [each.file for each in history.save(("crlf.md", b"\r\n")).refused] == ["crlf.md"]


def test_an_old_git_is_named(person: Person, open_history: Opener, tmp_path: Path) -> None:
    """By its version."""
    old = tmp_path / "old" / "git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.17.1\n")
    old.chmod(0o755)
    history = open_history(person.folder, create=True, environment={"PATH": f"{old.parent}"})
    assert "git 2.17.1 is too old" in history.repository.state().notice
    history.save(("page.md", b"one\n"))
    with pytest.raises(Unavailable):
        history.repository.diff("page.md", "HEAD")


def test_a_child_that_hangs_is_ended(adopted: History, env: Mapping[str, str]) -> None:
    """A time limit on each; the error says what to look at."""
    where = layouts.find(adopted.root)
    assert where is not None
    program = Program(where, env)
    with pytest.raises(Unavailable) as ended:
        program.run("-c", "alias.hang=!sleep 600", "hang", limit_s=0.3)
    assert ended.value.code == "history.git-timeout"


def test_a_fed_child_that_fails_says_why(adopted: History, env: Mapping[str, str]) -> None:
    """Even when it ends before it was fed."""
    where = layouts.find(adopted.root)
    assert where is not None
    program = Program(where, env)

    def feed() -> None:
        with program.feeding("fast-import", "--done") as (into, _):
            for _ in range(100_000):
                into.write(b"nonsense\n")

    with pytest.raises(Broken, match="fast-import"):
        feed()


def test_a_vault_of_another_owner_works_without_touching_global_settings(
    open_history: Opener, tmp_path: Path, unprivileged: Path
) -> None:
    """Where git itself says `dubious ownership`; filters of that repository are not run."""
    if os.getuid() != 0:
        pytest.skip("needs root, to make a folder that belongs to somebody else")
    folder = unprivileged / "vault"
    folder.mkdir()
    person = Person(
        folder, {"PATH": os.environ["PATH"], "HOME": str(unprivileged), "GIT_CONFIG_NOSYSTEM": "1"}
    )
    person.git("init", "-q", "-b", "main")
    person.git("config", "user.name", "Nobody")
    person.git("config", "user.email", "n@example.org")
    person.commit("page.md", "one\n")
    os.seteuid(0)
    os.setegid(0)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert "dubious" in str(_failure(Person(folder, environment)))
    history = open_history(folder, environment=environment)
    history.save(("page.md", b"two\n"))
    history.save(*((f"n/{number}.md", b"many\n") for number in range(40)))
    assert len(history.repository.log("page.md")) == 2
    with (folder / ".git" / "config").open("a") as config:
        config.write(f'[filter "evil"]\n\tclean = "touch {tmp_path / "trace"}; cat"\n')
    done = history.save((".gitattributes", b"*.md filter=evil\n"), ("page.md", b"three\n"))
    done = history.save(("page.md", b"four\n"))
    assert "belongs to somebody else" in done.refused[0].reason
    assert not (tmp_path / "trace").exists()
    assert not (tmp_path / ".gitconfig").exists()


def _failure(person: Person) -> AssertionError:
    with pytest.raises(AssertionError) as failed:
        person.git("status")
    return failed.value


def test_what_a_child_that_hangs_has_started_is_ended_too(adopted: History, env: Mapping[str, str]) -> None:
    """A filter's own children hold the pipes: while one lived, no commit of the vault would go on."""
    where = layouts.find(adopted.root)
    assert where is not None
    with pytest.raises(Unavailable) as ended:
        Program(where, env).run("-c", "alias.hang=!(sleep 600; true) | cat", "hang", limit_s=0.3)
    assert ended.value.code == "history.git-timeout"


def test_runs_under_way_end_with_the_owner(adopted: History, env: Mapping[str, str]) -> None:
    """None goes on behind its back, and none begins any more."""
    where = layouts.find(adopted.root)
    assert where is not None
    program = Program(where, env)
    failed = []

    def hang() -> None:
        try:
            with program.feeding("-c", "alias.hang=!(echo up; sleep 600; true) | cat", "hang") as (_, said):
                begun.append(said.readline())
                said.read()
        except Unavailable as error:
            failed.append(error.code)

    begun: list[bytes] = []
    thread = threading.Thread(target=hang)
    thread.start()
    until(lambda: begun)
    program.close()
    thread.join(timeout=60)
    assert failed == ["history.git-timeout"]
    with pytest.raises(Unavailable) as late:
        program.run("version")
    assert late.value.code == "owner.closing"
