"""The habits of the house (docs/architecture.md), held by reading the code: sizes, words, edges, floors.

Each rule reads one file's syntax tree and gives what offends it; a second test shows each rule an offence.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pcpd"
MODULE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 5
CLOCKS = {
    "time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today",
}  # fmt: skip
TOP_FLOORS = {"daemon", "client", "cli", "__main__"}
CODE = re.compile(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z0-9]+)*")
DECISIONS = {"audited", "visible_to", "may", "decide", "visibility"}
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file, parsed; `room` is the folder or module below the package."""

    name: str
    room: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    def at(self, node: ast.stmt | ast.expr, what: str) -> str:
        """Names a place and what is wrong there."""
        return f"{self.name}:{node.lineno}: {what}"


Rule = Callable[[Source], Iterator[str]]


def sources(folder: Path) -> list[Source]:
    """Reads every Python file below a folder."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        found.append(Source(str(path.relative_to(ROOT)), room, path.read_text(encoding="utf-8")))
    return found


def functions(tree: ast.AST) -> Iterator[Function]:
    """Gives every function, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def dotted(node: ast.expr) -> str:
    """Gives `a.b.c` for names and attributes, nothing for the rest."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def long_modules(source: Source) -> Iterator[str]:
    """A module has one subject: never over 400 lines."""
    lines = source.text.count("\n")
    if lines > MODULE_LINES:
        yield f"{source.name}: {lines} lines"


def long_functions(source: Source) -> Iterator[str]:
    """A function does one thing: never over 60 lines, its docstring not counted."""
    for function in functions(source.tree):
        docstring = ast.get_docstring(function, clean=False)
        lines = (function.end_lineno or 0) - function.lineno + 1
        lines -= docstring.count("\n") + 1 if docstring else 0
        if lines > FUNCTION_LINES:
            yield source.at(function, f"{function.name} has {lines} lines")


def many_parameters(source: Source) -> Iterator[str]:
    """At most 5 parameters by position; options are keyword-only."""
    for function in functions(source.tree):
        given = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        count = len([name for name in given if name not in {"self", "cls"}])
        if count > PARAMETERS:
            yield source.at(function, f"{function.name} takes {count} parameters by position")


def environment(source: Source) -> Iterator[str]:
    """The environment is read in settings and cli alone."""
    if source.room in {"settings", "cli"}:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and dotted(node).startswith(
            ("os.environ", "os.getenv", "os.putenv")
        ):
            yield source.at(node, f"{dotted(node)} outside settings and cli")
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            for name in node.names:
                if name.name in {"environ", "environb", "getenv", "getenvb"}:
                    yield source.at(node, f"os.{name.name} outside settings and cli")


def printing(source: Source) -> Iterator[str]:
    """Only the CLI prints: on a relay's standard output anything but protocol is a fault."""
    if source.room == "cli":
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and dotted(node.func) in {
            "print",
            "sys.stdout.write",
            "builtins.print",
        }:
            yield source.at(node, "print outside cli")


def undocumented(source: Source) -> Iterator[str]:
    """Every module, and every public class and function that others can reach, says what it gives."""
    if not ast.get_docstring(source.tree):
        yield f"{source.name}: the module has no docstring"
    yield from _undocumented(source, source.tree)


def _undocumented(source: Source, scope: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in scope.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and not _is_overload(node):
            yield source.at(node, f"{node.name} has no docstring")
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(source, node)


def _is_overload(node: Function | ast.ClassDef) -> bool:
    return any(dotted(each) in {"overload", "typing.overload"} for each in node.decorator_list)


def clocks(source: Source) -> Iterator[str]:
    """Below the composition root the wall clock comes in through parameters, not even as their default."""
    if source.room in TOP_FLOORS:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and dotted(node) in CLOCKS:
            yield source.at(node, f"{dotted(node)} below floor 7")
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            for name in node.names:
                if f"time.{name.name}" in CLOCKS:
                    yield source.at(node, f"time.{name.name} below floor 7")


def chance(source: Source) -> Iterator[str]:
    """`random` has no place in the product: secrets come from the system, through a parameter."""
    for node in ast.walk(source.tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        module = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if {"random", "uuid"} & {*names, *module}:
            assert isinstance(node, ast.stmt)
            yield source.at(node, "imports random or uuid")


def doors_that_decide(source: Source) -> Iterator[str]:
    """Acts ask policy and write audit rows, so that every door does alike; doors call acts."""
    if source.room not in {"api", "mcp_server", "gate"}:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in DECISIONS:
            yield source.at(node, f"{dotted(node.func)} in a door")


def empty_names(source: Source) -> Iterator[str]:
    """A name that refuses nothing collects everything."""
    parts = set(Path(source.name).with_suffix("").parts)
    for name in sorted(parts & EMPTY_NAMES):
        yield f"{source.name}: {name} says nothing"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Manager", "Helper", "Utils", "Util")):
            yield source.at(node, f"{node.name} says nothing")


def sleeping(source: Source) -> Iterator[str]:
    """Tests wait for conditions: only `until` may sleep, between two looks at one.

    A pause that only moves a kill to another moment says so on its line: nothing is waited for.
    """
    lines = source.text.splitlines()
    allowed = {
        id(node)
        for function in functions(source.tree)
        if function.name == "until"
        for node in ast.walk(function)
    }
    for node in ast.walk(source.tree):
        is_sleep = isinstance(node, ast.Call) and dotted(node.func) in {
            "time.sleep",
            "sleep",
            "asyncio.sleep",
        }
        if not isinstance(node, ast.Call) or not is_sleep or id(node) in allowed or _yields(node):
            continue
        if "nothing is waited for" not in lines[node.lineno - 1]:
            yield source.at(node, "sleeps")


def _yields(call: ast.Call) -> bool:
    """Tells a sleep of no time, which only lets another task run."""
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


RULES: list[Rule] = [
    long_modules,
    long_functions,
    many_parameters,
    environment,
    printing,
    undocumented,
    clocks,
    chance,
    doors_that_decide,
    empty_names,
]
OFFENCES: dict[Rule, str] = {
    long_modules: "x = 1\n" * 401,
    long_functions: "def f():\n" + "    x = 1\n" * 60,
    many_parameters: "def f(self, a, b, c, d, e, g, *, h): ...",
    environment: "import os\nx = os.environ['A']",
    printing: "print('x')",
    undocumented: '"""Module."""\nclass A:\n    """Class."""\n    def public(self): ...',
    clocks: "import time\ndef f(now=time.time): ...",
    chance: "from random import choice",
    doors_that_decide: "def list_pages(memory, caller): return memory.visible_to(caller)",
    empty_names: "class PageManager: ...",
    sleeping: "import time\ntime.sleep(1)",
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_product_keeps_the_habits_of_the_house(rule: Rule) -> None:
    """Every file of the package, against every rule."""
    assert [offence for source in sources(PACKAGE) for offence in rule(source)] == []


def test_tests_do_not_sleep() -> None:
    """A test that waits for a time is slow on a fast machine and wrong on a slow one."""
    assert [offence for source in sources(ROOT / "tests") for offence in sleeping(source)] == []


@pytest.mark.parametrize("rule", [*RULES, sleeping], ids=lambda rule: rule.__name__)
def test_each_rule_finds_its_offence_and_lets_good_code_pass(rule: Rule) -> None:
    """A rule that finds nothing would hold nothing."""
    good = '"""Module."""\n\n\ndef give(a: int, *, b: int = 1) -> int:\n    """Gives."""\n    return a + b\n'
    assert list(rule(Source("pcpd/memory/good.py", "memory", good))) == []
    room = "api" if rule is doors_that_decide else "memory"
    assert len(list(rule(Source(f"pcpd/{room}/bad.py", room, OFFENCES[rule])))) == 1


def error_classes(trees: list[ast.Module]) -> set[str]:
    """Gives the names of PcpError and of every class that comes from it."""
    bases = {
        node.name: {dotted(base).rpartition(".")[2] for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    known = {"PcpError"}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known


def raised_codes() -> dict[str, str]:
    """Gives every code that is the first argument of an error, and a place where it is used.

    A class with an `__init__` of its own names its code there, in the call of its base's.
    """
    read = sources(PACKAGE)
    trees = [source.tree for source in read]
    classes = error_classes(trees)
    own = {node.name: node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    special = {
        name for name in classes - {"PcpError"} if any(f.name == "__init__" for f in functions(own[name]))
    }
    found = {}
    for source in read:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and node.name in special:
                calls = [each for each in ast.walk(node) if ast.unparse(each).startswith("super().__init__(")]
            elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in classes - special:
                calls = [node]
            else:
                continue
            for call in calls:
                if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
                    found[str(call.args[0].value)] = source.at(call, "raised here")
    return found


def test_every_error_code_is_stable_in_form_and_explained() -> None:
    """`room.what`, in words with hyphens, with its row in docs/troubleshooting.md."""
    explained = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    codes = raised_codes()
    assert "page.stale" in codes
    assert {code: place for code, place in codes.items() if f"| `{code}` |" not in explained} == {}
    assert [code for code in codes if not CODE.fullmatch(code)] == []


def test_no_room_imports_upwards_or_sideways() -> None:
    """The contracts of pyproject.toml, checked by import-linter."""
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
        "--no-cache",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
