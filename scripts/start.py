"""What `scripts/run` and `scripts/test` do once a Python is found: set up, then hand over.

start.py run [VAULT]               makes or adopts the vault and starts its owner
start.py test [PYTEST ARGUMENTS]   runs the tests
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from environment import ROOT, SetUpError, ready

OWNED_ELSEWHERE = 3  # pcpd's exit status for a vault that another owner holds


def main(arguments: list[str]) -> int:
    """Runs one of the two words; gives the exit status."""
    match arguments:
        case ["test", *rest]:
            hand_over("pytest", rest)
        case ["bench", *rest]:
            hand_over("benchmark", rest, path=ROOT / "scripts")
        case ["docs"]:
            hand_over("reference", [], path=ROOT / "scripts")
        case ["run"]:
            return run(None)
        case ["run", "-h" | "--help"]:
            print("Usage: scripts/run [VAULT]\n\nStarts pcpd on VAULT (a folder; made when missing).\n"
                  "Without VAULT: on a small sample vault at ~/pcpd-sample.")  # fmt: skip
            return 0
        case ["run", folder] if not folder.startswith("-"):
            return run(Path(folder))
    print("Usage: scripts/run [VAULT]", file=sys.stderr)
    return 2


def hand_over(module: str, arguments: list[str], *, path: Path | None = None) -> NoReturn:
    """Becomes a module of the development environment, in the checkout's folder."""
    python = str(ready(development=True))
    os.chdir(ROOT)
    more = {"PYTHONPATH": str(path)} if path else {}
    os.execve(python, [python, "-m", module, *arguments], os.environ | more)


def run(chosen: Path | None) -> int:
    """Starts the vault's owner and stays until it ends."""
    if shutil.which("git") is None:
        raise SetUpError("pcpd keeps history with git, and finds none: install git and start again.")
    pcpd = ready().with_name("pcpd")
    vault = (chosen or Path.home() / "pcpd-sample").expanduser().absolute()
    if chosen is None and not vault.exists():
        shutil.copytree(ROOT / "fixtures" / "sample-vault", vault)
    if not (vault / ".pcp" / "context.yaml").exists():
        made = subprocess.run([pcpd, "init", vault], stderr=subprocess.PIPE, text=True, check=False)
        said = made.stderr.splitlines(keepends=True)
        print(
            *(said if made.returncode else said[1:]), sep="", end="", file=sys.stderr
        )  # `what_next` says more
        if made.returncode:
            return made.returncode
    elif _is_served(pcpd, vault):
        return 0
    print(what_next(pcpd, vault, word="boiler" if chosen is None else "WORD"), file=sys.stderr, flush=True)
    status = _stay([str(pcpd), "--vault", str(vault), "run"])
    return 0 if status == OWNED_ELSEWHERE and _is_served(pcpd, vault) else status  # two started together


def what_next(pcpd: Path, vault: Path, *, word: str) -> str:
    """Gives what the person can type in another terminal once the owner is ready."""
    start = f"{shlex.quote(str(pcpd))} --vault {shlex.quote(str(vault))}"
    return (
        f"\nYour vault is {vault}. Edit it with any editor; pcpd follows.\n"
        "When the line `ready` appears, type in another terminal:\n\n"
        f"  {start} search {word}\n"
        f"  {start} status\n"
        f"  {start} log\n\n"
        "To let an agent in (it lists the clients that it knows; docs/connect.md tells more):\n\n"
        f"  {start} connect\n\n"
        "Ctrl-C ends pcpd.\n"
    )


def _stay(command: list[str]) -> int:
    """Runs the owner as a child, passes on what asks it to end, and gives its exit status."""
    owner = subprocess.Popen(command)
    # Ctrl-C reaches the owner by itself too: being asked twice makes no difference to it.
    for asked in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(asked, lambda number, _: owner.send_signal(number))
    status = owner.wait()
    return 128 - status if status < 0 else status


def _is_served(pcpd: Path, vault: Path) -> bool:
    """Tells whether an owner that stays serves the vault, and says so; starts none."""
    asked = subprocess.run(
        [pcpd, "--vault", vault, "status", "--no-start", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    owner = {} if asked.returncode else json.loads(asked.stdout)["owner"]
    if not owner or owner["idle_exit_s"] is not None:  # one that a command started makes room
        return False
    print(f"{vault} is served already, by process {owner['pid']} at {owner['url']}.", file=sys.stderr)
    return True


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetUpError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
