"""`scripts/run`: a vault that is not there is made, one that is there is adopted, one that is owned is left."""

import json
import signal
import subprocess
import sys

from tests.conftest import ROOT, World

DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, {scripts!r})
import start
start.ready = lambda **_: Path({bin!r}) / "python"
sys.exit(start.main(sys.argv[1:]))
"""


def run(world: World, *arguments: str) -> "subprocess.Popen[str]":
    """Starts the script with an environment that is set up already."""
    folder = world.home / "bin"
    folder.mkdir(exist_ok=True)
    pcpd = folder / "pcpd"
    pcpd.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pcpd "$@"\n')
    pcpd.chmod(0o755)
    code = DRIVER.format(scripts=str(ROOT / "scripts"), bin=str(folder))
    return subprocess.Popen(
        [sys.executable, "-c", code, "run", *arguments],
        env=dict(world.env), cwd=world.home, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def said_until_ready(script: "subprocess.Popen[str]") -> str:
    """What it said up to the line that says that it serves."""
    assert script.stderr is not None
    said = ""
    for line in script.stderr:
        said += line
        if line.startswith("ready http://127.0.0.1:"):
            return said
    raise AssertionError(f"ended before it was ready: {said}")


def ended(script: "subprocess.Popen[str]") -> tuple[int, str]:
    """The exit status of a script that ends by itself, and the rest of what it said."""
    said = script.communicate(timeout=120)[1]
    return script.returncode, said


def stop(script: "subprocess.Popen[str]") -> tuple[int, str]:
    """Asks it to end, as a system does, and gives the exit status and what it said meanwhile."""
    script.send_signal(signal.SIGTERM)
    return ended(script)


def test_without_a_vault_a_sample_is_made_that_search_finds(world: World) -> None:
    """It lies where the person can open and keep it, and what to type next is printed."""
    script = run(world)
    said = said_until_ready(script)
    sample = world.home / "pcpd-sample"
    assert f"--vault {sample} search" in said
    assert f"--vault {sample} connect" in said
    found = json.loads(world.pcpd("--vault", sample, "search", "boiler", "--json").stdout)
    assert found["results"]
    assert stop(script) == (0, "")


def test_a_folder_of_notes_is_adopted_and_its_files_stay(world: World) -> None:
    """Whatever was in it is as it was."""
    notes = world.home / "my notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n")
    script = run(world, str(notes))
    said_until_ready(script)
    assert (notes / "a.md").read_text() == "# A\n"
    assert (notes / ".pcp" / "context.yaml").exists()
    assert stop(script) == (0, "")


def test_a_vault_that_is_owned_already_is_said_and_is_no_failure(world: World) -> None:
    """A second start changes nothing and says who serves it."""
    first = run(world)
    said_until_ready(first)
    status, said = ended(run(world))
    assert status == 0, said
    assert "served already, by process" in said
    assert said.count("\n") == 1
    assert stop(first) == (0, "")


def test_more_than_one_argument_is_refused(world: World) -> None:
    """Status 2, as of every command that was not understood."""
    status, said = ended(run(world, "a", "b"))
    assert (status, "Usage" in said) == (2, True)


def test_an_interrupt_that_reaches_the_script_alone_ends_it_too(world: World) -> None:
    """As of a supervisor; Ctrl-C reaches both."""
    script = run(world)
    said = said_until_ready(script)
    assert "is a vault now" not in said  # what to type next says all
    script.send_signal(signal.SIGINT)
    assert ended(script) == (0, "")
