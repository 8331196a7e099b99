"""docs/api.md: what a person has written there, and below it every route and shape, from the API's description."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pcpd.api.app import ownerless
from pcpd.api.description import describe
from pcpd.api.refusals import ALWAYS, WITH_BODY, WITH_TOKEN

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
MARK = "<!-- From here on written by `scripts/docs`, from the routes themselves. -->"

HEADINGS = {"search": "Finding", "upkeep": "Owner", "openapi": "OpenAPI"}

Json = Mapping[str, Any]

_OFTEN = {*ALWAYS, *WITH_TOKEN, *WITH_BODY}


def api_page() -> str:
    """Gives docs/api.md."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return head + mark + "\n\n" + "\n".join(_parts(describe(ownerless().routes)))


def _parts(document: Json) -> Iterator[str]:
    for tag in document["tags"]:
        yield f"## {HEADINGS.get(tag['name'], tag['name'].capitalize())}\n\n{tag['description']}\n"
        for path, methods in document["paths"].items():
            for method, said in methods.items():
                if tag["name"] in said["tags"]:
                    yield _operation(f"{method.upper()} {path}", said)
    yield "## Statuses\n\n| status | |\n| --- | --- |"
    for name, said in document["components"]["responses"].items():
        yield f"| {name.removeprefix('Refused')} | {_cell(said['description'])} |"
    yield "\n## Shapes\n\nJSON objects. Keys in *italics* may be absent.\n"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield _shape(name, schema)


def _operation(title: str, said: Json) -> str:
    parts = [f"### {title}\n", _filled(f"{said['summary']}."), ""]
    for paragraph in said.get("description", "").split("\n\n"):
        parts += [_filled(paragraph), ""] if paragraph else []
    if said.get("parameters"):
        parts += ["| parameter | in | type | |", "| --- | --- | --- | --- |"]
        parts += [_parameter(each) for each in said["parameters"]] + [""]
    parts += [*_body(said.get("requestBody")), *_answers(said["responses"])]
    own = [status for status in said["responses"] if int(status) >= 400 and int(status) not in _OFTEN]
    if own:
        parts += [f"Refuses with {', '.join(own)} too.", ""]
    return "\n".join(parts)


def _parameter(said: Json) -> str:
    needed = ", needed" if said["required"] else ""
    schema = said["schema"]
    bounds = [f"{schema[key]}" for key in ("minimum", "maximum") if key in schema]
    between = f", {' to '.join(bounds)}" if bounds else ""
    default = (
        f", else `{json.dumps(schema['default'])}`" if schema.get("default") not in {None, "", False} else ""
    )
    kind = f"{_type(schema)}{needed}{between}{default}"
    return f"| `{said['name']}` | {said['in']} | {kind} | {_cell(said['description'])} |"


def _body(said: Json | None) -> Iterator[str]:
    for kind, content in (said or {}).get("content", {}).items():
        if kind == "application/json":
            yield f"Body: {_type(content['schema'])}, such as\n\n```json\n{json.dumps(content['example'])}\n```\n"
        elif kind == "text/markdown":
            yield "Body: the page's text, UTF-8.\n"


def _answers(responses: Json) -> Iterator[str]:
    for status, said in responses.items():
        if int(status) >= 400:
            continue
        bodies = [
            _type(content["schema"]) if kind == "application/json" else f"`{kind}`"
            for kind, content in said.get("content", {}).items()
        ]
        headers = ", ".join(f"`{name}`" for name in said.get("headers", {}))
        gives = " or ".join(bodies) or "nothing"
        about = f" {said['description']}" if said["description"] != "As asked." else ""
        yield _filled(f"**{status}** {gives}{f', with {headers}' if headers else ''}.{about}")
        yield ""


def _shape(name: str, schema: Json) -> str:
    parts = [f"### {name}\n"]
    for paragraph in schema.get("description", "").split("\n\n"):
        parts += [_filled(paragraph), ""] if paragraph else []
    needed = schema.get("required", ())
    parts += ["| key | type |", "| --- | --- |"]
    for key, inner in schema["properties"].items():
        parts.append(f"| {f'`{key}`' if key in needed else f'*{key}*'} | {_type(inner)} |")
    return "\n".join([*parts, ""])


def _type(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        inner = schema.get("prefixItems")
        return f"[{', '.join(map(_type, inner))}]" if inner else f"list of {_type(schema['items'])}"
    return str(schema.get("type", "any value"))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _filled(text: str) -> str:
    return textwrap.fill(text, 118, break_on_hyphens=False, break_long_words=False)
