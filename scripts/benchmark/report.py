"""Rows of the benchmark, as a table for people and as JSON for programs."""

import json
import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date


@dataclass(frozen=True)
class Row:
    """One figure: what was measured, ours, the limit or peer of the same run, and the goal.

    `holds` is None where the goal was not tried. Figures are in `unit`.
    """

    what: str
    pages: int
    ours: float
    limit: float | None
    unit: str
    goal: str
    holds: bool | None
    note: str = ""


def as_json(rows: Sequence[Row]) -> str:
    """Gives the rows with the machine that they come from."""
    return json.dumps(
        {"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=1, ensure_ascii=False
    )


def as_table(rows: Sequence[Row]) -> str:
    """Gives the rows as a Markdown table."""
    lines = [
        "| what | pages | ours | limit here | goal | holds | remark |",
        "| --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for row in rows:
        holds = {True: "yes", False: "**no**", None: "–"}[row.holds]
        ours, limit = figure(row.ours, row.unit), "–" if row.limit is None else figure(row.limit, row.unit)
        cells = [row.what, f"{row.pages:,}", ours, limit, row.goal, holds, row.note]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(value: float, unit: str) -> str:
    """Gives a figure with three digits that count and its unit."""
    text = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return f"{text} {unit}".strip()


def machine() -> dict[str, str]:
    """Says what the figures were measured on."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    return {
        "date": date.today().isoformat(),  # noqa: DTZ011 - the person's day
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "cores": str(os.cpu_count()),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "git": git,
    }


def page(rows: Sequence[Row]) -> str:
    """Gives docs/performance.md."""
    where = ", ".join(f"{name} {value}" for name, value in machine().items())
    return f"""# Performance

Written by `scripts/bench`; run it to get the figures of your own machine. Each of ours stands beside the
limit: what the least possible work takes on the same machine, in the same run, on the same vault. Where a
figure is a latency it is the median unless it says p95. Goals are aims; no test depends on them.

Measured on: {where}.

{as_table(rows)}

How each is measured stands in `scripts/benchmark/`, one module a subject. Vaults come from
`scripts/make_vault.py`: 10,000 pages are 22 MB in 12 folders, with front matter, links, tags, and 4 % of
the pages in Chinese or Japanese.
"""
