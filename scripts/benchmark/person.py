"""A person's machine for the benchmark: their home, their vault's owner, and an agent's MCP session."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Json = dict[str, Any]


class Person:
    """A home of its own; commands of pcpd run in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PCPD_PORT": "0",
        }
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

    def let_in(self, vault: Path, principal: str) -> str:
        """Lets an agent read and write all that is not sensitive; gives a token for it."""
        grant = ["--rights", "read,write", "--partitions", "personal,work,research,shared,archive"]
        self.pcpd("--vault", vault, "grant", principal, *grant)
        return str(self.ask(vault, "token", "create", "--principal", principal)["token"])

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
        self.address = url.partition("//")[2]


class Session:
    """An MCP session over stdio that costs next to nothing itself: raw JSON-RPC. `start_s`: until it was greeted."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        start = time.perf_counter()
        self._server = subprocess.Popen(
            command, env=dict(env), cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.pid = self._server.pid
        self._number = 0
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.start_s = time.perf_counter() - start
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, **params: object) -> Json:
        """Sends one request and waits for its answer."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._server.stdout is not None
        while line := self._server.stdout.readline():
            answer: Json = json.loads(line)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(str(answer["error"]))
                return answer
        raise RuntimeError("the server ended")

    def call(self, tool: str, **arguments: object) -> Json:
        """Calls a tool and gives its answer."""
        return self.ask("tools/call", name=tool, arguments=arguments)

    def close(self) -> None:
        """Ends the session as clients do: by closing the relay's standard input."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(10)
        self._server.stdout.close()

    def _send(self, message: Json) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message).encode() + b"\n")
        self._server.stdin.flush()


class Agent(Session):
    """A session of an agent that may read and write all, through the relay."""

    def __init__(self, person: Person, vault: Path, principal: str) -> None:
        token = person.let_in(vault, principal)
        command = [sys.executable, "-m", "pcpd", "--vault", str(vault), "mcp", "--principal", principal]
        super().__init__(command, person.env | {"PCPD_TOKEN": token}, person.home)

    def search(self, query: str) -> str:
        """Calls search_memory and gives the answer's text."""
        return json.dumps(self.call("search_memory", query=query))
