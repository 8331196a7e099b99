"""Promise 3: one process owns a vault at a time; everything else is its client, and starts one where there is none."""

import json
import os
import signal
from pathlib import Path

from tests.conftest import World
from tests.waiting import until


def owner_pid(world: World, vault: Path) -> int:
    """The process that `status` names."""
    return int(json.loads(world.pcpd("--vault", vault, "status", "--json").stdout)["owner"]["pid"])


def test_a_second_owner_says_who_the_first_one_is_and_ends_with_3(world: World) -> None:
    """Also when it comes by another path to the same folder."""
    vault = world.home / "vault"
    world.pcpd("init", vault)
    first = world.start("--vault", vault, "run")
    assert first.stderr is not None
    assert first.stderr.readline().startswith("ready http://127.0.0.1:")
    by_link = world.home / "link"
    by_link.symlink_to(vault)
    for path in (vault, by_link, vault / ".." / "vault"):
        second = world.pcpd("--vault", path, "run", check=False)
        assert second.returncode == 3
        assert str(first.pid) in second.stderr
    assert owner_pid(world, by_link) == first.pid
    first.terminate()
    first.communicate(timeout=60)


def test_clients_start_an_owner_and_the_next_one_when_it_is_killed(world: World) -> None:
    """No lock to remove, no pid file: the kernel's lock ends with the process."""
    vault = world.home / "vault"
    world.pcpd("init", vault)
    (vault / "note.md").write_text("zyxquartz\n")
    first = owner_pid(world, vault)
    os.kill(first, signal.SIGKILL)
    found = json.loads(world.pcpd("--vault", vault, "search", "zyxquartz", "--json").stdout)
    assert [hit["path"] for hit in found["results"]] == ["note"]
    assert owner_pid(world, vault) != first


def test_an_owner_that_a_client_started_hands_over_to_the_one_that_a_person_starts(world: World) -> None:
    """`pcpd run` after a command: it takes the vault instead of giving up."""
    vault = world.home / "vault"
    world.pcpd("init", vault)
    started = owner_pid(world, vault)
    lasting = world.start("--vault", vault, "run")
    assert lasting.stderr is not None
    assert lasting.stderr.readline().startswith("ready ")
    assert owner_pid(world, vault) == lasting.pid != started
    lasting.terminate()
    lasting.communicate(timeout=60)


def test_an_ending_owner_commits_what_it_has_and_leaves_nothing_behind(world: World) -> None:
    """SIGTERM: sockets are gone, the last save is committed or waits for the next start."""
    vault = world.home / "vault"
    world.pcpd("init", vault)
    owner = world.start("--vault", vault, "run")
    assert owner.stderr is not None
    owner.stderr.readline()
    owner.send_signal(signal.SIGTERM)
    owner.communicate(timeout=60)
    assert owner.returncode == 0
    until(lambda: not list((world.home / "run").rglob("socket")))
