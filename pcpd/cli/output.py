"""Printing: results to stdout, all else to stderr, nothing that a page says can steer the terminal."""

import json
import sys
from collections.abc import Iterable, Sequence

import click

# Control characters, and those that turn the direction of text, shown as what they are.
_UNSAFE = [*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_ESCAPES = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in _UNSAFE}
_ESCAPES |= {9: "\\t", 10: "\\n", 13: "\\r"}


def plain(text: object) -> str:
    """Gives text on one line that a terminal shows and does not obey."""
    return str(text).translate(_ESCAPES)


def styled(text: str, colour: str, *, is_bold: bool = False) -> str:
    """Gives coloured text; `click.echo` takes the colour away where there is no terminal."""
    return click.style(text, fg=colour, bold=is_bold or None)


def line(text: str = "") -> None:
    """Prints one line of a result."""
    click.echo(text)


def say(text: str) -> None:
    """Says a sentence on stderr."""
    click.echo(text, err=True)


def raw(data: bytes) -> None:
    """Writes bytes as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def document(value: object) -> None:
    """Prints a result as one JSON document in UTF-8, indented for a person at a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a file name that is not UTF-8
        data = json.dumps(value, ensure_ascii=True, indent=indent).encode()
    raw(data + b"\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows: aligned under headings on a terminal, else their cells with tabs between."""
    cells = [[plain("" if cell is None else cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            line("\t".join(row))
        return
    if not cells:
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in cells:
        shown.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(shown)


def counted(number: int, noun: str) -> str:
    """Gives a number with its noun: `1 page`, `2 pages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
