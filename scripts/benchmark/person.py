"""A person's machine for the benchmark: their home, their vault's owner, and an agent's MCP session."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Json = dict[str, Any]


class Person:
    """A home of its own; commands of pcpd run in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)}
        for name in ("STATE", "CONFIG", "RUNTIME"):
            folder = home / name.lower()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.env["XDG_RUNTIME_DIR" if name == "RUNTIME" else f"XDG_{name}_HOME"] = str(folder)

    def pcpd(self, *arguments: str | Path) -> str:
        """Runs a command to its end and gives what it printed."""
        command = [sys.executable, "-m", "pcpd", *map(str, arguments)]
        done = subprocess.run(
            command, env=self.env, cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=1800, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
        return done.stdout

    def ask(self, vault: Path, *arguments: str) -> Json:
        """Runs a command with --json and gives its answer."""
        answer: Json = json.loads(self.pcpd("--vault", vault, *arguments, "--json"))
        return answer

    def is_proved(self, vault: Path) -> bool:
        """Tells whether the index equals one made anew."""
        try:
            return not self.ask(vault, "doctor", "--deep")["differences"]
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return False

    @contextmanager
    def owner(self, vault: Path) -> Iterator["Owner"]:
        """Starts the vault's owner, waits until it is ready, and ends it afterwards."""
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "pcpd", "--vault", str(vault), "run"],
            env=self.env, cwd=self.home, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("ready "):
                    break
            else:
                raise RuntimeError("the owner did not get ready: " + "".join(said))
            yield Owner(process.pid, line.split()[1], time.perf_counter() - start)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stderr.close()


class Owner:
    """A running owner: its process, its address, and the seconds from its start to `ready`."""

    def __init__(self, pid: int, url: str, ready_s: float) -> None:
        self.pid, self.url, self.ready_s = pid, url, ready_s


class Agent:
    """An MCP client over stdio that costs next to nothing itself: raw JSON-RPC through the relay."""

    def __init__(self, person: Person, vault: Path, principal: str) -> None:
        grant = ["--rights", "read,write", "--partitions", "personal,work,research,shared,archive"]
        person.pcpd("--vault", vault, "grant", principal, *grant)
        token = str(person.ask(vault, "token", "create", "--principal", principal)["token"])
        self._relay = subprocess.Popen(
            [sys.executable, "-m", "pcpd", "--vault", str(vault), "mcp", "--principal", principal],
            env=person.env | {"PCPD_TOKEN": token}, cwd=person.home,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._number = 0
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, **params: object) -> Json:
        """Sends one request and waits for its answer."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._relay.stdout is not None
        while line := self._relay.stdout.readline():
            answer: Json = json.loads(line)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(str(answer["error"]))
                return answer
        raise RuntimeError("the relay ended")

    def search(self, query: str) -> str:
        """Calls search_memory and gives the answer's text."""
        return json.dumps(self.ask("tools/call", name="search_memory", arguments={"query": query}))

    def close(self) -> None:
        """Ends the session as clients do: by closing the relay's standard input."""
        assert self._relay.stdin is not None
        assert self._relay.stdout is not None
        self._relay.stdin.close()
        self._relay.wait(10)
        self._relay.stdout.close()

    def _send(self, message: Json) -> None:
        assert self._relay.stdin is not None
        self._relay.stdin.write(json.dumps(message).encode() + b"\n")
        self._relay.stdin.flush()
