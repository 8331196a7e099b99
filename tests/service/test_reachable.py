"""An owner stays within reach of its clients, whatever happens to its sockets and to the vault's folder."""

import shutil
from pathlib import Path

from tests.service.conftest import GENEROUS_S, Machine
from tests.waiting import until


def _sockets(machine: Machine) -> list[Path]:
    return [path for path in Path(machine.env["XDG_RUNTIME_DIR"]).rglob("*") if path.is_socket()]


def test_sockets_that_were_cleared_away_are_made_anew(machine: Machine) -> None:
    """As at logout, or by a cleaner of /tmp: the owner lives on, and its next client finds it."""
    owner = machine.run()
    before = sorted(_sockets(machine))
    assert [path.name for path in before] == ["mcp.sock", "socket"]
    shutil.rmtree(before[0].parent.parent)
    until(lambda: sorted(_sockets(machine)) == before, "the sockets are there again")
    assert machine.owner_pid() == owner.pid
    owner.terminate()
    assert owner.wait(GENEROUS_S) == 0
    assert not _sockets(machine)


def test_owner_of_a_vault_that_was_put_back_is_found_by_it(machine: Machine, tmp_path: Path) -> None:
    """A backup in the old place is another folder, by which clients look for its owner."""
    owner = machine.run()
    shutil.copytree(machine.vault, tmp_path / "backup", symlinks=True)
    shutil.rmtree(machine.vault)
    shutil.copytree(tmp_path / "backup", machine.vault, symlinks=True)
    (machine.vault / "kettle.md").write_text("It whistles.\n")
    until(lambda: "kettle" in machine.pcpd("search", "whistles", check=False).stdout)
    assert machine.owner_pid() == owner.pid


def test_owner_of_a_vault_that_was_moved_away_ends(machine: Machine) -> None:
    """It knows the vault by its old place; at the new one the next command starts an owner, with the same state."""
    owner = machine.run()
    machine.pcpd("grant", "agent:claude", "--rights", "read")
    machine.vault = machine.vault.rename(machine.vault.with_name("elsewhere"))
    assert owner.wait(GENEROUS_S) == 0
    assert machine.pcpd("search", "boiler").stdout.startswith("boiler  Boiler\n")
    assert "agent:claude" in machine.pcpd("grant").stdout


def _replaced(machine: Machine) -> None:
    """Puts another vault in the place of the machine's."""
    other = machine.vault.with_name("other")
    machine.world.pcpd("init", other)
    (other / "kettle.md").write_text("It whistles.\n")
    shutil.rmtree(machine.vault)
    other.rename(machine.vault)


def test_owner_of_a_vault_in_whose_place_another_one_was_put_ends(machine: Machine) -> None:
    """It is not ours: until we end, we make no socket by which its clients would find us."""
    owner = machine.run()
    before = set(_sockets(machine))
    _replaced(machine)
    seen: set[Path] = set()

    def is_over() -> bool:
        seen.update(_sockets(machine))
        return owner.poll() is not None

    until(is_over, "the owner ends")
    assert owner.wait(GENEROUS_S) == 0
    assert seen == before
    assert not _sockets(machine)


def test_a_vault_that_took_the_place_of_another_one_has_its_own_owner_and_grants(machine: Machine) -> None:
    """Also while the other one's still runs."""
    owner = machine.run()
    machine.pcpd("grant", "agent:claude", "--rights", "read")
    _replaced(machine)
    assert machine.pcpd("search", "whistles").stdout.startswith("kettle  kettle\n")
    assert "agent:claude" not in machine.pcpd("grant").stdout
    assert machine.owner_pid() != owner.pid
    assert owner.wait(GENEROUS_S) == 0
    assert machine.pcpd("search", "boiler or whistles").stdout.startswith("kettle")
    assert machine.owner_pid() != owner.pid
