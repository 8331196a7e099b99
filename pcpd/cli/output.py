"""Printing: results to stdout, all else to stderr, nothing that a page says can steer the terminal."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

import click

# Control characters, and those that turn the direction of text, shown as what they are.
_UNSAFE = [*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_ESCAPES = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in _UNSAFE}
_ESCAPES |= {9: "\\t", 10: "\\n", 13: "\\r"}
_WHOLE = 20  # columns of a time such as 2026-01-05T10:00:00Z
_NARROWEST = 40


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


def pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Prints one line a subject, what is said of it aligned."""
    said = [(name, plain(text)) for name, text in rows]
    width = max((len(name) for name, _ in said), default=0)
    for name, text in said:
        line(f"{name:{width}}  {text}")


def indented(text: str) -> None:
    """Prints text four columns in, wrapped to the terminal; on one line where there is none."""
    if not sys.stdout.isatty():
        line(f"    {text}")
        return
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    for each in textwrap.wrap(text, width - 4, break_on_hyphens=False):
        line(f"    {each}")


def short_path(path: str, home: str) -> str:
    """Gives a path with `~` for the home folder."""
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home.rstrip('/')}/") else path


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, notes: Sequence[Sequence[str]] = ()
) -> None:
    """Prints rows: aligned under headings on a terminal, else their cells with tabs between.

    Where the terminal is narrow, long cells are folded; dates, versions and the like stay whole. `notes` are texts
    for each row, which stand below it on a terminal; nothing is folded then, and long words lose their middle.
    """
    cells = [[plain("" if cell is None else cell) for cell in row] for row in rows]
    if sys.stdout.isatty() and notes:
        _noted(columns, cells, notes)
        return
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
    for number, column in enumerate(columns):
        longest = max(len(row[number]) for row in cells)
        shown.add_column(column, overflow="fold", no_wrap=longest <= _WHOLE)
    for row in cells:
        shown.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(shown)


def _noted(columns: Sequence[str], cells: Sequence[Sequence[str]], notes: Sequence[Sequence[str]]) -> None:
    """Prints rows with notes below them, wrapped between words."""
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    aligned = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (columns, *cells)]
    line(click.style(aligned[0], bold=True))
    for row, below in zip(aligned[1:], notes, strict=True):
        line(row)
        for note in below:
            words = (_cut(word, width - 2) for word in plain(note).split(" "))
            for each in textwrap.wrap(" ".join(words), width - 2, break_on_hyphens=False):
                line(f"  {each}")


def _cut(text: str, width: int) -> str:
    """Gives text without its middle where it is wider."""
    half = (width - 1) // 2
    return text if len(text) <= width else f"{text[: width - 1 - half]}…{text[-half:]}"


def counted(number: int, noun: str, many: str = "") -> str:
    """Gives a number with its noun: `1 page`, `2 pages`; `many` where the plural is another one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {many or f'{noun}s'}"
