"""docs/architecture.md shows the house as it stands: every module in its room, and none that is not there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pcpd"
_ROOM = re.compile(r"### (\w+)/\n\n((?:- `\w+` .+\n)+)")


def drawn() -> dict[str, list[str]]:
    """The modules that the page names, by room; `pcpd` for those in none."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    return {room: re.findall(r"^- `(\w+)`", modules, re.MULTILINE) for room, modules in _ROOM.findall(page)}


def built() -> dict[str, set[str]]:
    """The modules that there are, by room. A folder of files inside a room counts as one of its modules."""
    found: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        *folders, name = file.relative_to(PACKAGE).with_suffix("").parts
        name = folders.pop() if name == "__init__" and len(folders) > 1 else name
        if name not in {"__init__", "__main__", "schema"}:
            found.setdefault(folders[0] if folders else "pcpd", set()).add(name)
    return found


def test_every_module_stands_in_its_room_once() -> None:
    """Whoever adds or moves a module says in the same commit what it is for."""
    for room, modules in drawn().items():
        assert len(modules) == len(set(modules)), room
    assert {room: set(modules) for room, modules in drawn().items()} == built()
