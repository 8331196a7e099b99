"""Reads the two small YAML files of a context, which strangers may have written: bounded, strict on shape.

Only what `context` and `grants` share: a tree of nodes with lines, and a checker that gathers every problem
before it raises. Scalars keep their spelling. Knows neither file's keys.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import yaml

from pcpd.errors import Invalid

SIZE_LIMIT = 1024 * 1024
DEPTH_LIMIT = 12
NODE_LIMIT = 50_000
PROBLEM_LIMIT = 50
SHOWN = 40
TRUE = frozenset({"true", "True", "TRUE"})
FALSE = frozenset({"false", "False", "FALSE"})
NULL = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `section` is where, such as `grants[2]`; `line` is 1-based."""

    section: str
    key: str
    line: int
    message: str

    def __str__(self) -> str:
        """Gives it as people read it."""
        where = ".".join(part for part in (self.section, self.key) if part)
        return f"line {self.line}: {where}: {self.message}" if where else f"line {self.line}: {self.message}"


@dataclass(slots=True)
class Findings:
    """All that is wrong with one file, gathered so that a person corrects it in one go."""

    code: str
    file: str
    found: list[Finding] = field(default_factory=list)

    def add(self, section: str, key: str, line: int, message: str) -> None:
        """Notes one problem."""
        self.found.append(Finding(section, key, line, message))

    def check(self) -> None:
        """Raises `Invalid` with every problem, if there is one."""
        if not self.found:
            return
        shown = [str(finding) for finding in self.found[:PROBLEM_LIMIT]]
        more = len(self.found) - len(shown)
        lines = "; ".join(shown) + (f"; and {more} more" if more else "")
        problems = [
            {"section": finding.section, "key": finding.key, "line": finding.line, "message": finding.message}
            for finding in self.found[:PROBLEM_LIMIT]
        ]
        raise Invalid(
            self.code,
            f"{self.file}: {lines}",
            hint=f"correct {self.file}; until then it is not used",
            details={"problems": problems},
        )

    def stop(self, line: int, message: str) -> Invalid:
        """Notes a problem after which the rest cannot be read, and gives the error to raise."""
        self.add("", "", line, message)
        try:
            self.check()
        except Invalid as error:
            return error
        raise AssertionError


@dataclass(frozen=True, slots=True)
class Field:
    """A value, with the section and key it stands under."""

    node: yaml.Node
    section: str
    key: str

    @property
    def line(self) -> int:
        """The 1-based line on which it begins."""
        return line_of(self.node)


def line_of(node: yaml.Node | yaml.Event) -> int:
    """Gives the 1-based line on which a node begins."""
    mark = node.start_mark
    return int(mark.line) + 1 if mark else 1


def shown(text: str) -> str:
    """Quotes a value for a message: cut short, control characters escaped."""
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")


def compose(data: bytes, findings: Findings) -> yaml.MappingNode | None:
    """Gives the root mapping; None for a file without content. Raises `Invalid` for what is no such tree."""
    if len(data) > SIZE_LIMIT:
        raise findings.stop(1, f"is larger than {SIZE_LIMIT // 1024} KiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise findings.stop(line, f"is not UTF-8 at byte {error.start}") from None
    try:
        _check_depth(text, findings)
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise findings.stop(mark.line + 1 if mark else 1, error.problem or "is not YAML") from None
    except yaml.YAMLError as error:
        raise findings.stop(1, str(error).splitlines()[0]) from None
    if root is None or is_null(root):
        return None
    if not isinstance(root, yaml.MappingNode):
        raise findings.stop(line_of(root), "must hold keys and values")
    _check_expansion(root, findings)
    return root


def is_null(node: yaml.Node) -> bool:
    """Tells whether a value is absent: nothing, `~` or `null`, not quoted."""
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in NULL


class Checker:
    """Takes values out of one mapping; a wrong shape becomes a finding, and a harmless stand-in."""

    def __init__(self, node: yaml.Node, section: str, findings: Findings) -> None:
        """Reads the keys of `node`; a node that is no mapping is a finding and has no keys."""
        self.section = section
        self.line = line_of(node)
        self._findings = findings
        self._fields: dict[str, Field] = {}
        if isinstance(node, yaml.MappingNode):
            self._take_keys(node)
        else:
            findings.add(section, "", self.line, "must hold keys and values, such as `{name: work}`")

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are there, in order."""
        return tuple(self._fields)

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Makes a finding of each key that is not in `known`."""
        for key, value in self._fields.items():
            if key not in known:
                self.wrong(value, f"is no known key; known are {', '.join(known)}")

    def wrong(self, value: Field, message: str) -> None:
        """Notes a problem of a value."""
        self._findings.add(value.section, value.key, value.line, message)

    def get(self, key: str, *, required: bool = False) -> Field | None:
        """Gives a value; None where it is absent or null."""
        value = self._fields.get(key)
        if value is None or is_null(value.node):
            if required:
                self._findings.add(
                    self.section, key, self.line if value is None else value.line, "is missing"
                )
            return None
        return value

    def text(
        self, key: str, check: Callable[[str], str | None] | None = None, *, required: bool = False
    ) -> str | None:
        """Gives a scalar as it is spelled; `check` says what is wrong with it."""
        value = self.get(key, required=required)
        return None if value is None else self.scalar(value, check)

    def scalar(self, value: Field, check: Callable[[str], str | None] | None) -> str | None:
        """Gives the text of a scalar that `check` accepts."""
        if not isinstance(value.node, yaml.ScalarNode):
            self.wrong(value, "must be one value, not a list or a mapping")
            return None
        text = str(value.node.value)
        problem = check(text) if check else None
        if problem:
            self.wrong(value, problem)
            return None
        return text

    def flag(self, key: str) -> bool:
        """Gives a true or false; absent is false."""
        value = self.get(key)
        if value is None:
            return False
        plain = isinstance(value.node, yaml.ScalarNode) and not value.node.style
        if not plain or value.node.value not in TRUE | FALSE:
            self.wrong(value, "must be true or false")
            return False
        return value.node.value in TRUE

    def items(self, key: str, *, required: bool = False) -> tuple[Field, ...]:
        """Gives the items of a list, each under its own section such as `grants[1]`; counts from 1."""
        value = self.get(key, required=required)
        if value is None:
            return ()
        if not isinstance(value.node, yaml.SequenceNode):
            self.wrong(value, "must be a list, such as `[work]`")
            return ()
        prefix = f"{self.section}.{key}" if self.section else key
        return tuple(Field(item, f"{prefix}[{n}]", "") for n, item in enumerate(value.node.value, start=1))

    def texts(
        self, key: str, check: Callable[[str], str | None], *, required: bool = False
    ) -> tuple[str, ...]:
        """Gives a list of scalars that `check` accepts."""
        found = [self.scalar(item, check) for item in self.items(key, required=required)]
        return tuple(text for text in found if text is not None)

    def _take_keys(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._findings.add(self.section, "", line_of(key), "a key must be one word")
            elif key.value in self._fields:
                self._findings.add(self.section, key.value, line_of(key), "stands here twice")
            else:
                self._fields[key.value] = Field(value, self.section, key.value)


def one_of(*allowed: str) -> Callable[[str], str | None]:
    """Gives a check that accepts the words listed."""

    def check(text: str) -> str | None:
        return None if text in allowed else f"{shown(text)} is not one of {', '.join(allowed)}"

    return check


def _check_depth(text: str, findings: Findings) -> None:
    """Walks the events, which are flat, before anything recursive sees the text."""
    depth = 0
    documents = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_LIMIT:
                raise findings.stop(line_of(event), f"is nested deeper than {DEPTH_LIMIT} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise findings.stop(line_of(event), "holds a second document")


def _check_expansion(root: yaml.Node, findings: Findings) -> None:
    """Counts nodes as the aliases repeat them, so that nothing after this can blow up or run in a circle."""
    waiting: list[tuple[yaml.Node, int]] = [(root, 1)]
    count = 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > NODE_LIMIT or depth > DEPTH_LIMIT:
            raise findings.stop(line_of(node), "its aliases and lists expand to too much")
        if isinstance(node, yaml.MappingNode):
            waiting += [(part, depth + 1) for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(part, depth + 1) for part in node.value]
