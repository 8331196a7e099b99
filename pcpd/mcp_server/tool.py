"""What a tool is: what it is for, what it takes and gives, what it does to the memory, and the function behind it.

Input schemas are one flat object of strings, numbers, truth values and lists of strings, without defaults, bounds
or references: several clients turn a schema down that holds more. What is allowed is said in words and checked here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from pcpd.mcp_server.arguments import Arguments
from pcpd.memory.memory import Caller, Memory

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool gives back: text for the model, and the same as structured data."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a tool does to the memory, as MCP's annotations say it.

    `destroys`: it can remove or replace what is there; `repeats`: calling it twice does no more than once.
    """

    reads_only: bool = False
    destroys: bool = False
    repeats: bool = True


READS = Effect(reads_only=True)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `properties` are its arguments, `gives` the keys of its answer as data, all of them always there."""

    name: str
    title: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...]
    gives: Mapping[str, Schema]
    run: Callable[[Memory, Caller, Arguments], Answer]
    effect: Effect = READS

    @property
    def schema(self) -> Schema:
        """The input schema."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }

    @property
    def output_schema(self) -> Schema:
        """The schema of the answer as data. An error has no data, so that no client takes it for a bad answer."""
        return record(self.gives)

    def described(self) -> types.Tool:
        """Gives the tool as `tools/list` shows it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.schema,
            output_schema=self.output_schema,
            annotations=types.ToolAnnotations(
                title=self.title,
                read_only_hint=self.effect.reads_only,
                destructive_hint=self.effect.destroys,
                idempotent_hint=self.effect.repeats,
                open_world_hint=False,
            ),
        )


def string(description: str, *, among: tuple[str, ...] = ()) -> Schema:
    """Gives the schema of a text."""
    choice = {"enum": list(among)} if among else {}
    return {"type": "string", "description": description, **choice}


def integer(description: str) -> Schema:
    """Gives the schema of a whole number."""
    return {"type": "integer", "description": description}


def boolean(description: str) -> Schema:
    """Gives the schema of a truth value."""
    return {"type": "boolean", "description": description}


def strings(description: str) -> Schema:
    """Gives the schema of a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def maybe(schema: Schema) -> Schema:
    """Gives the schema of a value in an answer that may be null."""
    kind = schema["type"]
    return {**schema, "type": kind if isinstance(kind, list) else [kind, "null"]}


def rows(description: str, columns: Mapping[str, Schema]) -> Schema:
    """Gives the schema of a list of rows in an answer, each with all of these columns."""
    return {"type": "array", "description": description, "items": record(columns)}


def record(columns: Mapping[str, Schema]) -> Schema:
    """Gives the schema of an object with all of these keys."""
    return {"type": "object", "properties": dict(columns), "required": list(columns)}
