"""Packs what commits leave loose, and a growing number of packs into fewer. Nothing is ever dropped.

In adopted and larger repositories too, because our objects land there. Loose objects go through git's own
maintenance, whose lock keeps two of them apart; unreachable ones are packed like all others.
"""

from pcpd.history.layout import Layout
from pcpd.history.program import LONG_S, Program

LOOSE = 3  # in one of 256 folders, as git itself guesses: some thousand in all
PACKS = 20
_OLDEST = (2, 33)


def pack(layout: Layout, program: Program) -> bool:
    """Packs when there is enough to pack, and tells whether it did."""
    if program.problem or program.version < _OLDEST:
        return False
    objects = layout.commondir / "objects"
    folder = objects / "17"
    is_loose = folder.is_dir() and sum(1 for _ in folder.iterdir()) > LOOSE
    if is_loose:
        # The first run packs, the second removes the loose copies of what is packed.
        for _ in range(2):
            program.run("maintenance", "run", "--quiet", "--task=loose-objects", limit_s=LONG_S)
        program.run("maintenance", "run", "--quiet", "--task=commit-graph", limit_s=LONG_S)
    is_scattered = sum(1 for _ in (objects / "pack").glob("*.pack")) > PACKS
    if is_scattered:
        program.run("repack", "-d", "-l", "-q", "--geometric=2", limit_s=LONG_S)
    return is_loose or is_scattered
