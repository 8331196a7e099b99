"""Builds the wheel and uses it as its user would; see `scripts/wheel-test`."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import LOCK, ROOT, ready, sections


def main() -> int:
    """Runs the whole check in a folder of its own; a failing command ends it."""
    work = Path(tempfile.mkdtemp(prefix="pcpd-wheel-"))
    try:
        use(install(build(work), work), work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


def build(work: Path) -> Path:
    """Builds the wheel from a copy of what git tracks, so that nothing untracked helps it."""
    source = work / "source"
    source.mkdir()
    for name in run(["git", "ls-files", "-z"], cwd=ROOT).split("\0"):
        if name and (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    pip = [str(ready(development=True)), "-m", "pip", "-q", "--disable-pip-version-check", "wheel"]
    run([*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(work), str(source)])
    (wheel,) = work.glob("*.whl")
    return wheel


def install(wheel: Path, work: Path) -> Path:
    """Installs it with the lock's first section alone; gives the new `pcpd`."""
    names = work / "runtime.txt"
    names.write_text(sections(LOCK.read_text(encoding="utf-8"))[0], encoding="utf-8")
    run([sys.executable, "-m", "venv", str(work / "env")])
    pip = [str(work / "env" / "bin" / "python"), "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    run([*pip, "--require-hashes", "--no-deps", "-r", str(names)])
    run([*pip, "--no-deps", str(wheel)])
    return work / "env" / "bin" / "pcpd"


def use(pcpd: Path, work: Path) -> None:
    """A new user's first minutes: version, a vault, a page, a search, the owner's end."""
    home = Path(tempfile.mkdtemp(prefix="pcpd-", dir="/tmp"))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    vault = home / "my notes"
    vault.mkdir()
    (vault / "boiler.md").write_text("# Boiler\n\nGas or heat pump?\n", encoding="utf-8")
    start = [str(pcpd), "--vault", str(vault)]
    pid = 0
    try:
        print(run([str(pcpd), "--version"], env=env, cwd=home).strip())
        run([str(pcpd), "init", str(vault)], env=env, cwd=home)
        found = json.loads(run([*start, "search", "pump", "--json"], env=env, cwd=home))
        pid = json.loads(run([*start, "status", "--json"], env=env, cwd=home))["owner"]["pid"]
        assert [hit["path"] for hit in found["results"]] == ["boiler"], found
        look = (
            "from pcpd.cli.service_files import launchd_agent, systemd_unit; from pathlib import Path as P\n"
        )
        look += "systemd_unit(P('/b/pcpd'), P('/v')); launchd_agent('x', P('/b/pcpd'), P('/v'), P('/l'))"
        run([str(pcpd.with_name("python")), "-c", look], env=env, cwd=work)
        print("The wheel makes a vault, finds a page and holds its service files.")
    finally:
        if pid:
            os.kill(pid, 15)
        shutil.rmtree(home, ignore_errors=True)


def run(command: list[str], **options: object) -> str:
    """Runs a command to its end and gives what it printed; its failure ends the check and is shown."""
    done = subprocess.run(  # type: ignore[call-overload]
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False, **options
    )
    if done.returncode:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
