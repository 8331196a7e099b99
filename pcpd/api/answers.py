"""What the routes answer with: JSON of an act's result, made where the act ran."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from fastapi import Response


class Json(Response):
    """A JSON object. Names that are no UTF-8 (surrogates) are written as escapes, which clients read back."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Gives the bytes of a JSON value."""
        try:
            return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            return json.dumps(content, separators=(",", ":")).encode()


def answer(result: object, headers: Mapping[str, str] | None = None) -> Json:
    """Gives the answer for an act's result: a dataclass, or a mapping of JSON values."""
    plain = asdict(result) if is_dataclass(result) and not isinstance(result, type) else result
    return Json(plain, headers=dict(headers or {}))
