"""An index that is damaged under a running owner is made anew, while pages and history stay as they are."""

from pcpd.errors import PcpError
from pcpd.memory import doctor, read
from tests.vaults import Opened
from tests.waiting import until


def test_an_index_that_is_damaged_while_the_owner_runs_is_made_anew_by_itself(opened: Opened) -> None:
    """Reads fail with the reason until it is there; nobody has to restart anything."""
    for number in range(200):
        opened.save(f"n{number}.md", f"zyxquartz {number} " + "many more words " * 50)
    until(lambda: read.search(opened.memory, opened.person, "zyxquartz").total == 200)
    opened.memory.index.checkpoint()
    path = opened.memory.index.path
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * (path.stat().st_size - 4096 * 3))

    refusals: set[str] = set()

    def found() -> bool:
        try:
            return read.search(opened.memory, opened.person, "zyxquartz").total == 200
        except PcpError as error:
            refusals.add(error.code)
            return False

    opened.save("late.md", "tealharbor\n")
    until(lambda: opened.memory.index.path != path)
    until(found)
    assert refusals <= {"index.corrupt", "index.closed"}
    until(lambda: doctor.compare(opened.memory) == [])
    opened.failures.clear()  # the damage was told
