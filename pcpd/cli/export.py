"""Writes rows of the audit trail as JSON Lines, in the fields that other programs of the protocol read."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pcpd.cli.invocation import Invocation
from pcpd.cli.output import counted, line, plain, say
from pcpd.errors import Usage

FIELDS = (
    "id",
    "at",
    "principal",
    "action",
    "channel",
    "categories",
    "outcome",
    "object_ids",
    "counts",
    "duration_ms",
)
"""Those of an archive's `audit/log.jsonl`: pages by opaque numbers alone."""
AT_ONCE = 1000
STDOUT = "-"


def exported(invocation: Invocation, asked: Mapping[str, object], file: str) -> None:
    """Writes every row that was asked for, oldest first; a file is made anew (0600), or nothing is written."""
    if file == STDOUT:
        for text in _lines(invocation, asked):
            line(text)
        return
    path = Path(file)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise Usage(
            "audit.export-exists", f"{path} is there already", hint="name another file, or take that one away"
        ) from error
    count = 0
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            for text in _lines(invocation, asked):
                out.write(f"{text}\n")
                count += 1
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    if invocation.is_json:
        sys.stdout.write(json.dumps({"file": str(path), "rows": count}) + "\n")
    else:
        say(f"Written to {plain(path)}: {counted(count, 'row')}.")


def _lines(invocation: Invocation, asked: Mapping[str, object]) -> Iterator[str]:
    """Gives the rows, a line each, until the end that the trail has when it is reached."""
    connection, after = invocation.connection(), ""
    while True:
        query = {**asked, "after": after, "limit": AT_ONCE}
        answer: dict[str, Any] = connection.request("GET", "audit", query=query).json()
        for row in answer["rows"]:
            yield json.dumps({name: row[name] for name in FIELDS}, ensure_ascii=False)
        if len(answer["rows"]) < AT_ONCE:
            return
        after = answer["position"]
