"""What `init` and a start refuse, and what they say then."""

import shutil

from tests.conftest import World


def test_init_over_a_running_owner_makes_no_second_id(world: World) -> None:
    """Its context.yaml is gone for a moment, as on an older branch: a new id would leave grants and tokens behind."""
    vault = world.home / "vault"
    world.pcpd("init", vault)
    owner = world.start("--vault", vault, "run")
    assert owner.stderr is not None
    assert owner.stderr.readline().startswith("ready ")
    (vault / ".pcp" / "context.yaml").unlink()
    refused = world.pcpd("init", vault, check=False)
    assert refused.returncode == 3
    assert not (vault / ".pcp" / "context.yaml").exists()
    owner.terminate()
    owner.communicate(timeout=60)


def test_a_state_folder_that_cannot_be_made_is_named_with_the_next_step(world: World) -> None:
    """A file stands where it should be: the vault is untouched, and no owner starts."""
    vault = world.home / "vault"
    world.pcpd("init", vault)
    shutil.rmtree(world.home / "state")
    (world.home / "state").write_text("in the way")
    refused = world.pcpd("--vault", vault, "run", check=False)
    assert refused.returncode == 1
    assert str(world.home / "state") in refused.stderr
    assert "hint" in refused.stderr
