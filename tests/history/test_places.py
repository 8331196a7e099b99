"""Where the repository lies and what kind it is: larger ones, work trees, submodules, broken and unusual ones."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pcpd.errors import Broken, NotFound, Unavailable
from pcpd.history.versions import Change
from tests.history.people import History, Opener, Person


@pytest.fixture
def above(person: Person) -> Person:
    """The person's larger repository, with the vault as a folder in it."""
    person.git("init", "-q")
    person.commit("code.py", "secret of the larger repository\n")
    person.commit("notes/vault/page.md", "one\n")
    return person


@pytest.fixture
def inside(above: Person, open_history: Opener) -> History:
    """pcpd's history of that vault."""
    return open_history(above.folder / "notes" / "vault", create=True)


def test_a_vault_in_a_larger_repository_gets_a_branch_of_its_own(inside: History, above: Person) -> None:
    """The person's branch never moves, their index is untouched, and no repository is made inside theirs."""
    above.write("code.py", "staged\n")
    above.git("add", "code.py")
    head, index = above.git("rev-parse", "HEAD"), above.git("ls-files", "-s")
    done = inside.save(("page.md", b"two\n"), ("new.md", b"new\n"))
    inside.save(*((f"n/{number}.md", b"x\n") for number in range(30)))
    assert done.ref == "refs/heads/pcpd/ctx_1_a"
    assert (above.git("rev-parse", "HEAD"), above.git("ls-files", "-s")) == (head, index)
    assert not (inside.root / ".git").exists()
    assert above.git("ls-tree", "--name-only", str(done.rev)).split() == ["new.md", "page.md"]
    state = inside.repository.state()
    assert (state.kind, state.branch) == ("above", "pcpd/ctx_1_a")
    assert set(inside.repository.head_files()) == {
        "new.md",
        "page.md",
        *(f"n/{number}.md" for number in range(30)),
    }
    assert not inside.repository.differs("page.md", b"two\n")


def test_reading_stays_inside_the_vault(inside: History, above: Person) -> None:
    """Other branches of the larger repository are no versions of this vault."""
    inside.save(("page.md", b"one\n"))
    done = inside.save(("page.md", b"two\n"))
    assert inside.repository.resolve("HEAD") == done.rev
    assert inside.repository.show("page.md", "HEAD~1") == b"one\n"
    assert [version.file for version in inside.repository.log()] == ["page.md", "page.md"]
    for rev in ("main", above.git("rev-parse", "HEAD").strip(), "HEAD:code.py"):
        with pytest.raises((NotFound, Exception), match="version"):
            inside.repository.show("code.py", rev)
    inside.put("page.md", b"three\n")
    assert "+three" in inside.repository.diff("page.md")
    assert "+two" in inside.repository.diff(None, "HEAD~1")


def test_what_goes_on_in_the_larger_repository_does_not_concern_the_vault(
    inside: History, above: Person
) -> None:
    """A merge there, a detached head, an unborn branch: the own branch goes on."""
    for steps in (["checkout", "-q", "--detach"], ["checkout", "-q", "--orphan", "fresh"]):
        above.git(*steps)
        assert not inside.save(("page.md", steps[-1].encode())).aside


def test_when_the_person_checks_our_branch_out_it_does_not_move_either(
    inside: History, above: Person
) -> None:
    """Versions go aside then."""
    inside.save(("page.md", b"two\n"))
    tip = above.git("rev-parse", "pcpd/ctx_1_a")
    above.git("symbolic-ref", "HEAD", "refs/heads/pcpd/ctx_1_a")
    assert inside.save(("page.md", b"three\n")).aside
    assert above.git("rev-parse", "pcpd/ctx_1_a") == tip
    above.git("symbolic-ref", "HEAD", "refs/heads/main")
    assert inside.repository.wip_files() == ("page.md",)
    assert not inside.save(("page.md", b"three\n")).aside
    assert inside.repository.wip_files() == ()


def test_the_larger_repositorys_attributes_hold_in_the_vault(inside: History, above: Person) -> None:
    """A filter that is given by a path from its root."""
    for step in ("clean", "smudge"):
        above.git("config", f"filter.rot.{step}", "tr A-Za-z N-ZA-Mn-za-m")
    above.commit(".gitattributes", "notes/vault/secret/** filter=rot\n")
    done = inside.save(("secret/a.md", b"hidden\n"))
    assert above.git("show", f"{done.rev}:secret/a.md") == "uvqqra\n"
    assert inside.repository.show("secret/a.md", str(done.rev)) == b"hidden\n"


def test_two_vaults_in_one_repository_do_not_meet(
    inside: History, above: Person, open_history: Opener
) -> None:
    """Each has its own folder of state beside git's."""
    assert (above.folder / ".git" / "pcpd").exists() is False
    inside.save(("page.md", b"two\n"))
    other = open_history(above.folder / "notes", device="dev2")
    assert other.repository.state().kind == "above"


def test_the_vault_can_be_a_linked_work_tree(adopted: History, person: Person, open_history: Opener) -> None:
    """`.git` is a file there; HEAD and index are its own."""
    tree = person.folder.parent / "tree"
    person.git("worktree", "add", "-q", "-b", "side", str(tree))
    history = open_history(tree, create=True)
    history.save(("page.md", b"side\n"), ("new.md", b"x\n"))
    assert history.repository.state().branch == "side"
    assert person.at(tree).status() == ""
    assert person.status() == ""
    assert person.git("show", "side:page.md") == "side\n"
    assert person.git("show", "main:page.md") == "one\n"
    person.at(tree).git("checkout", "-q", "--detach")
    assert history.save(("page.md", b"aside\n")).aside


def test_the_vault_can_be_a_submodule(adopted: History, person: Person, open_history: Opener) -> None:
    """Its own history is kept; the outer repository is untouched."""
    outer = person.at(person.folder.parent / "outer")
    outer.folder.mkdir()
    outer.git("init", "-q")
    outer.git("submodule", "add", "-q", str(person.folder), "vault")
    outer.git("commit", "-q", "-m", "with vault")
    inner = person.at(outer.folder / "vault")
    history = open_history(inner.folder, create=True)
    history.save(("page.md", b"inner\n"))
    assert inner.status() == ""
    assert outer.git("rev-list", "--count", "HEAD") == "1\n"


@pytest.mark.parametrize("kind", ["clone", "submodule", "work tree file", "broken folder"])
@pytest.mark.parametrize("count", [1, 40])
def test_files_of_a_nested_repository_are_never_ours(
    adopted: History, person: Person, tmp_path: Path, kind: str, count: int
) -> None:
    """Not added as a link, not as files, and the reason is said."""
    nested = person.folder / "nested"
    if kind == "clone":
        person.git("init", "-q", str(nested))
        person.at(nested).commit("inner.md", "x\n")
    elif kind == "submodule":
        source = person.at(tmp_path / "source")
        source.folder.mkdir()
        source.git("init", "-q")
        source.commit("inner.md", "x\n")
        person.git("submodule", "add", "-q", str(source.folder), "nested")
        person.git("commit", "-q", "-m", "submodule")
        person.git("submodule", "deinit", "-q", "-f", "nested")
    else:
        nested.mkdir()
        if kind == "broken folder":
            (nested / ".git").mkdir()
        else:
            (nested / ".git").write_text("gitdir: /nowhere\n")
    tree = person.git("ls-tree", "-r", "HEAD", "nested")
    files = [f"nested/deep/{number}.md" for number in range(count)]
    done = adopted.save(*((file, b"x\n") for file in files), ("page.md", b"two\n"))
    assert [refused.file for refused in done.refused] == files
    assert "repository of its own" in done.refused[0].reason
    assert person.git("ls-tree", "-r", "HEAD", "nested") == tree
    assert person.git("show", "HEAD:page.md") == "two\n"
    assert not any(file.startswith("nested") for file in adopted.repository.head_files())


@pytest.mark.parametrize("fault", ["empty", "no head", "file to nowhere", "file of noise", "dangling link"])
def test_a_broken_git_folder_at_the_root_is_refused_in_words(
    person: Person, open_history: Opener, fault: str
) -> None:
    """Nothing is made over it."""
    dot_git = person.folder / ".git"
    if fault == "file to nowhere":
        dot_git.write_text("gitdir: ../nowhere\n")
    elif fault == "file of noise":
        dot_git.write_bytes(bytes(range(256)))
    elif fault == "dangling link":
        dot_git.symlink_to("nowhere")
    else:
        dot_git.mkdir()
        if fault == "no head":
            (dot_git / "objects").mkdir()
            (dot_git / "refs").mkdir()
    with pytest.raises(Broken) as broken:
        open_history(person.folder, create=True)
    assert broken.value.code == "history.broken"
    assert broken.value.hint


def test_a_damaged_repository_fails_with_words_and_not_half(adopted: History, person: Person) -> None:
    """Objects that are gone."""
    shutil.rmtree(person.folder / ".git" / "objects")
    (person.folder / ".git" / "objects").mkdir()
    with pytest.raises(Unavailable) as absent:
        adopted.save(("page.md", b"two\n"))
    assert absent.value.code == "history.absent"


def test_without_create_nothing_is_made(person: Person, open_history: Opener) -> None:
    """There is no history yet."""
    with pytest.raises(NotFound):
        open_history(person.folder)
    assert list(person.folder.iterdir()) == []


def test_what_pcpd_made_is_known_again(own: History, person: Person, open_history: Opener) -> None:
    """By its own mark, which a clone does not have."""
    own.save(("page.md", b"x\r\n"))
    assert open_history(person.folder).repository.state().kind == "own"
    clone = person.folder.parent / "clone"
    person.git("clone", "-q", str(person.folder), str(clone))
    assert open_history(clone).repository.state().kind == "adopted"


@pytest.mark.parametrize(
    "form", ["sha256", "reftable", "split index", "index v4", "sparse index", "untracked cache"]
)
def test_repositories_that_libgit2_does_not_understand_work_alike(
    person: Person, open_history: Opener, form: str
) -> None:
    """Commits, index entries, staged work, log."""
    flags = {"sha256": ["--object-format=sha256"], "reftable": ["--ref-format=reftable"]}.get(form, [])
    made = subprocess.run(
        ["git", "init", "-q", *flags],
        cwd=person.folder,
        env=dict(person.env),
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"needs git-{form}, which is not installed here")
    person.commit("page.md", "one\n")
    person.commit("in/side.md", "one\n")
    person.commit("out/side.md", "one\n")
    settings = {
        "split index": ["update-index", "--split-index"],
        "index v4": ["update-index", "--index-version", "4"],
        "sparse index": ["sparse-checkout", "set", "--cone", "--sparse-index", "in"],
        "untracked cache": ["update-index", "--force-untracked-cache"],
    }
    if form in settings:
        person.git(*settings[form])
    person.write("staged.md", "staged\n")
    person.git("add", "staged.md")
    history = open_history(person.folder)
    history.save(("page.md", b"two\n"), ("in/side.md", None), ("new/a.md", b"new\n"))
    done = history.save(*((f"n/{number}.md", b"x\n") for number in range(30)))
    assert person.status() == "A  staged.md\n"
    assert history.repository.show("page.md", str(done.rev)) == b"two\n"
    assert history.repository.show("out/side.md", "HEAD") == b"one\n"
    assert [version.change for version in history.repository.log("page.md")] == ["modified", "added"]
    person.git("checkout", "-q", "--detach")
    aside = history.save(("page.md", b"three\n"))
    assert aside.aside
    assert history.repository.state().wip == 1
    person.git("fsck", "--strict")


def test_files_that_a_sparse_checkout_leaves_out_are_not_deleted(adopted: History, person: Person) -> None:
    """Absent by design; a file that is really deleted goes."""
    person.commit("in/a.md", "a\n")
    person.commit("out/b.md", "b\n")
    person.git("sparse-checkout", "set", "--cone", "in")
    assert not (person.folder / "out").exists()
    done = adopted.save(("out/b.md", None), ("in/a.md", None), ("page.md", b"two\n"))
    assert done.skipped_unchanged == ("out/b.md",)
    assert person.git("ls-tree", "-r", "--name-only", "HEAD").split() == ["out/b.md", "page.md"]
    assert person.status() == ""
    assert "sparse" in adopted.repository.state().notice


def test_a_file_that_is_there_though_left_out_is_committed_for_good(adopted: History, person: Person) -> None:
    """Its entry follows too: their next commit does not put the old version back."""
    person.commit("out/b.md", "b\n")
    person.git("sparse-checkout", "set", "--cone", "in")
    adopted.save(("out/b.md", b"changed\n"))
    person.commit("other.md", "x\n")
    assert person.git("show", "HEAD:out/b.md") == "changed\n"


@pytest.mark.parametrize("packed", [True, False])
def test_a_branch_in_the_way_of_ours_is_named(inside: History, above: Person, packed: bool) -> None:
    """A branch called `pcpd` leaves no room for `pcpd/<id>`."""
    above.git("branch", "pcpd")
    if packed:
        above.git("pack-refs", "--all")
    with pytest.raises(Broken, match="refs/heads/pcpd") as taken:
        inside.save(("page.md", b"two\n"))
    assert "git branch -m pcpd" in taken.value.hint


def test_shallow_and_partial_clones_are_named_and_go_on(
    adopted: History, person: Person, open_history: Opener
) -> None:
    """Commits work; what is not there is said, and nothing is fetched behind the person's back."""
    person.commit("page.md", "two\n")
    for allowed in ("allowFilter", "allowAnySHA1InWant"):
        person.git("config", f"uploadpack.{allowed}", "true")
    origin = f"file://{person.folder}"
    shallow = person.at(person.folder.parent / "shallow")
    person.git("clone", "-q", "--depth=1", origin, str(shallow.folder))
    history = open_history(shallow.folder)
    history.save(("page.md", b"three\n"))
    assert "shallow" in history.repository.state().notice
    assert len(history.repository.log("page.md")) == 2
    partial = person.at(person.folder.parent / "partial")
    person.git("clone", "-q", "--filter=blob:none", origin, str(partial.folder))
    history = open_history(partial.folder)
    history.save(("page.md", b"three\n"))
    assert "partial" in history.repository.state().notice
    with pytest.raises(Unavailable) as absent:
        history.repository.show("page.md", "HEAD~2")
    assert absent.value.code == "history.absent"
    with pytest.raises(Unavailable, match="partial"):
        history.repository.diff("page.md", "HEAD~2")
    assert "?" in partial.git("rev-list", "--objects", "--missing=print", "HEAD")
    assert partial.status() == ""


def test_a_core_worktree_elsewhere_is_refused(adopted: History, person: Person, open_history: Opener) -> None:
    """The repository then keeps other files than this folder's."""
    person.git("config", "core.worktree", str(person.folder.parent))
    with pytest.raises(Broken, match="work tree"):
        open_history(person.folder)


def test_packed_refs_and_nested_branch_names(
    adopted: History, person: Person, env: Mapping[str, str]
) -> None:
    """A branch in a folder, packed away."""
    person.git("checkout", "-q", "-b", "feature/deep/one")
    person.git("pack-refs", "--all")
    adopted.save(("page.md", b"two\n"))
    adopted.commit(Change("page.md", data=b"three\n"))
    assert person.git("rev-list", "--count", "feature/deep/one") == "3\n"
    assert person.git("reflog", "-1", "--format=%gs").startswith("commit (pcpd): ")
