"""What the routes answer with: JSON of an act's result, made where the act ran."""

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any

from fastapi import Response

from pcpd.pages.times import to_z


class Json(Response):
    """A JSON object. Names that are no UTF-8 (surrogates) are written as escapes, which clients read back."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Gives the bytes of a JSON value."""
        try:
            return _written(content, ascii_only=False)
        except UnicodeEncodeError:
            return _written(content, ascii_only=True)


def answer(result: object, headers: Mapping[str, str] | None = None) -> Json:
    """Gives the answer for an act's result: a dataclass, or a mapping of JSON values."""
    return Json(result, headers=dict(headers or {}))


def _written(content: Any, *, ascii_only: bool) -> bytes:
    return json.dumps(content, ensure_ascii=ascii_only, separators=(",", ":"), default=_plain).encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return to_z(value)
    if is_dataclass(value) and not isinstance(value, type):
        # Not `asdict`, which copies all that is below first: half of what a page of results took.
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    raise TypeError(f"{type(value).__name__} is no JSON value")
