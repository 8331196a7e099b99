"""State belongs to a vault wherever it is moved; a copy gets state of its own, without grants or tokens."""

import shutil
import stat
from pathlib import Path

import pytest

from pcpd.errors import Conflict, NotFound, Unavailable
from pcpd.memory.begin import World, initialise
from pcpd.memory.identity import adopt_original, claim, is_moved, locate, read_context
from pcpd.memory.lock import VaultLock, is_locked
from tests.vaults import ENTROPY, Opened


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A vault whose state was claimed once."""
    root = tmp_path / "vault"
    initialise(root, World(Opened(tmp_path).clock(), {}), ENTROPY)
    found = locate(root, read_context(root).id, tmp_path / "states")
    claim(root, found, tmp_path / "states")
    return root


def name_of(root: Path, states: Path) -> str:
    """The state folder that a vault gets."""
    return locate(root, read_context(root).id, states).name


def test_a_moved_vault_keeps_its_state(vault: Path, tmp_path: Path) -> None:
    """The old root is gone: the same vault at another place."""
    before = name_of(vault, tmp_path / "states")
    moved = vault.rename(tmp_path / "elsewhere")
    assert name_of(moved, tmp_path / "states") == before


def test_a_vault_restored_from_a_backup_in_its_old_place_keeps_its_state(vault: Path, tmp_path: Path) -> None:
    """Another inode at the same path: the same vault."""
    before = name_of(vault, tmp_path / "states")
    shutil.copytree(vault, tmp_path / "backup")
    shutil.rmtree(vault)
    shutil.copytree(tmp_path / "backup", vault)
    shutil.rmtree(tmp_path / "backup")
    assert name_of(vault, tmp_path / "states") == before


def test_a_copy_gets_state_of_its_own_and_is_told_whose_copy_it_is(vault: Path, tmp_path: Path) -> None:
    """Both are there: the second one has another state and another configuration, so no grants, no tokens."""
    copy = Path(shutil.copytree(vault, tmp_path / "copy"))
    context_id = read_context(vault).id
    found = locate(copy, context_id, tmp_path / "states")
    assert (found.name, found.copy_of) == (f"{context_id}-2", str(vault))
    claim(copy, found, tmp_path / "states")
    assert name_of(vault, tmp_path / "states") == context_id
    third = Path(shutil.copytree(vault, tmp_path / "third"))
    assert name_of(third, tmp_path / "states") == f"{context_id}-3"


def test_an_original_whose_context_cannot_be_read_keeps_its_state_from_copies(
    vault: Path, tmp_path: Path
) -> None:
    """A bad edit there is no reason for a copy here to fail, nor to take tokens and grants over."""
    copy = Path(shutil.copytree(vault, tmp_path / "copy"))
    context_id = read_context(vault).id
    (vault / ".pcp" / "context.yaml").write_text("id: [\n")
    found = locate(copy, context_id, tmp_path / "states")
    assert (found.name, found.copy_of) == (f"{context_id}-2", str(vault))


def test_what_state_remembers_is_for_its_owners_eyes_alone(vault: Path, tmp_path: Path) -> None:
    """Folders 0700, files 0600, whatever the umask says."""
    state = tmp_path / "states" / name_of(vault, tmp_path / "states")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in state.iterdir()] == [0o600]


def test_a_copy_that_replaces_the_original_takes_its_state_over(vault: Path, tmp_path: Path) -> None:
    """`pcpd accept --copy`: from then on the original is the one without state."""
    states = tmp_path / "states"
    copy = Path(shutil.copytree(vault, tmp_path / "copy"))
    context_id = read_context(vault).id
    claim(copy, locate(copy, context_id, states), states)
    assert adopt_original(copy, context_id, states) == context_id
    assert name_of(copy, states) == context_id
    assert name_of(vault, states) != context_id


def test_a_vault_that_is_no_copy_cannot_take_anything_over(vault: Path, tmp_path: Path) -> None:
    """There is nothing to replace."""
    with pytest.raises(Conflict):
        adopt_original(vault, read_context(vault).id, tmp_path / "states")


def test_a_new_id_makes_a_copy_a_vault_of_its_own(vault: Path, tmp_path: Path) -> None:
    """Every other byte of context.yaml stays."""
    file = vault / ".pcp" / "context.yaml"
    file.write_text("# mine\n" + file.read_text() + "x_more: kept\n")
    before = read_context(vault).id
    initialise(vault, World(Opened(tmp_path).clock(), {}), bytes(reversed(ENTROPY)), new_id=True)
    after = read_context(vault).id
    assert after != before
    assert file.read_text().startswith("# mine\n")
    assert file.read_text().endswith("x_more: kept\n")
    assert name_of(vault, tmp_path / "states") == after


def test_making_a_vault_twice_changes_nothing(vault: Path, tmp_path: Path) -> None:
    """`pcpd init` on a vault."""
    before = (vault / ".pcp" / "context.yaml").read_bytes()
    begun = initialise(vault, World(Opened(tmp_path).clock(), {}), bytes(8))
    assert not begun.created
    assert (vault / ".pcp" / "context.yaml").read_bytes() == before


def test_a_folder_without_a_context_is_no_vault(tmp_path: Path) -> None:
    """The error says how to make it one."""
    with pytest.raises(NotFound) as none:
        read_context(tmp_path)
    assert "pcpd init" in none.value.hint


def test_the_kernel_lets_one_process_own_a_folder_and_forgets_it_with_the_process(tmp_path: Path) -> None:
    """Also by another path to the same folder."""
    lock = VaultLock()
    lock.take(tmp_path)
    link = tmp_path.parent / "link"
    link.symlink_to(tmp_path)
    assert is_locked(link)
    with pytest.raises(Unavailable):
        VaultLock().take(link)
    lock.release()
    assert not is_locked(tmp_path)


@pytest.mark.parametrize(
    ("happens", "moved"), [("nothing", False), ("moved", True), ("moved, and another folder came", True)]
)
def test_a_vault_that_was_moved_away_is_told_from_one_that_is_there(
    vault: Path, tmp_path: Path, happens: str, *, moved: bool
) -> None:
    """By the folder that is locked: it has another name then."""
    context_id = read_context(vault).id
    lock = VaultLock()
    lock.take(vault)
    if happens != "nothing":
        vault.rename(tmp_path / "elsewhere")
    if happens.endswith("came"):
        vault.mkdir()
    try:
        assert is_moved(vault, context_id, lock) is moved
    finally:
        lock.release()


def test_a_vault_that_was_removed_or_put_back_is_not_moved(vault: Path, tmp_path: Path) -> None:
    """Without a name it has no other place; one of its id in its place is a backup."""
    context_id = read_context(vault).id
    lock = VaultLock()
    lock.take(vault)
    try:
        shutil.copytree(vault, tmp_path / "backup")
        vault.rename(tmp_path / "aside")
        shutil.copytree(tmp_path / "backup", vault)
        assert not is_moved(vault, context_id, lock)
        shutil.rmtree(vault)
        shutil.rmtree(tmp_path / "aside")
        assert not is_moved(vault, context_id, lock)
    finally:
        lock.release()


def test_a_vault_in_whose_place_another_one_stands_is_there_no_more(vault: Path, tmp_path: Path) -> None:
    """Whether it was moved or removed; what cannot be read as a vault may be one that is being put back."""
    context_id = read_context(vault).id
    lock = VaultLock()
    lock.take(vault)
    try:
        context = (vault / ".pcp" / "context.yaml").read_text()
        shutil.rmtree(vault)
        (vault / ".pcp").mkdir(parents=True)
        assert not is_moved(vault, context_id, lock)
        (vault / ".pcp" / "context.yaml").write_text("id: [")
        assert not is_moved(vault, context_id, lock)
        (vault / ".pcp" / "context.yaml").write_text(context.replace("ctx_", "ctx_9"))
        assert is_moved(vault, context_id, lock)
    finally:
        lock.release()
