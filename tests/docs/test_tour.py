"""The tour is walked: what README.md and docs/tour.md tell a new user to type works, in that order."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, World
from tests.waiting import until

QUOTES = "house/Heat pump quotes"
LEFT_OUT = ("./scripts/", "alias ", "service install", "audit --follow")
"""What would change this machine, or goes on until the reader ends it."""


def blocks(page: Path) -> list[str]:
    """The shell blocks of a page that can be tried here."""
    found = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    without_alias = [re.sub(r"^alias .*\n", "", block, flags=re.MULTILINE) for block in found]
    return [block for block in without_alias if block and not any(word in block for word in LEFT_OUT)]


@pytest.fixture
def vault(world: World) -> Iterator[Path]:
    """The sample vault as `scripts/run` makes it, with its owner."""
    folder = world.home / "pcpd-sample"
    shutil.copytree(ROOT / "fixtures" / "sample-vault", folder)
    world.pcpd("init", folder)
    with world.start("--vault", folder, "run") as owner:
        assert owner.stderr is not None
        assert any(line.startswith("ready ") for line in owner.stderr)
        yield folder
        owner.terminate()
        owner.communicate(timeout=60)


def walk(world: World, vault: Path, block: str) -> str:
    """Types a block, as its reader would; gives what was printed. Any failure ends it."""
    start = f'pcpd() {{ "{sys.executable}" -m pcpd --vault "{vault}" "$@"; }}\nset -eu\n'
    done = subprocess.run(
        ["bash", "-c", start + block],
        env=dict(world.env), cwd=world.home, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    assert "error:" not in done.stdout, f"{block}\n{done.stdout}"
    return done.stdout


def versions(world: World, vault: Path) -> int:
    """How many versions of the page that the tour edits are in git."""
    return len(json.loads(world.pcpd("--vault", vault, "log", QUOTES, "--json").stdout)["versions"])


def test_readme_can_be_followed_word_for_word(world: World, vault: Path) -> None:
    """Its last word is a search that finds what was just written."""
    (block,) = blocks(ROOT / "README.md")
    walk(world, vault, block)
    # A reader's fingers are slower than this: the machine may need a moment more.
    until(lambda: "The kettle whistles now." in walk(world, vault, "pcpd search whistles"))


def test_tour_can_be_followed_word_for_word(world: World, vault: Path) -> None:
    """Between the edit and the look at earlier versions, the reader takes longer than a commit waits."""
    until(lambda: versions(world, vault) == 1)
    said = ""
    for block in blocks(ROOT / "docs" / "tour.md"):
        said += walk(world, vault, block)
        if "Adler asks" in block:
            until(lambda: versions(world, vault) == 2)
    assert "+Adler asks for 2,000 more." in said
    assert re.search(r"unresolved\s+Cellar", said)
    assert "claude-code\tno\tconnected" in said or "claude-code\tyes\tconnected" in said
    assert "Taken back from agent:claude-code: 1 grant, 1 token." in said
    assert '"PCPD_TOKEN": "pcp_' in said
    assert "Taken back: 1 grant, 1 token." in said
    text = (vault / "house" / "boiler.md").read_text(encoding="utf-8")
    assert "title: Boiler # the old one is from 1998\n" in text
    assert "importance: 0.9\n" in text
    assert (vault / "house" / "roof.md").exists()
    assert "Adler asks" not in (vault / f"{QUOTES}.md").read_text(encoding="utf-8")
