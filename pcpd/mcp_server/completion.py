"""`completion/complete`: paths that the caller may see, for the resource template and the prompts' arguments."""

import mcp_types as types

from pcpd.errors import Usage
from pcpd.mcp_server.asking import Asking, Context
from pcpd.mcp_server.prompts import COMPLETED
from pcpd.mcp_server.uris import TEMPLATE, typed, value_of
from pcpd.memory import read
from pcpd.memory.memory import Caller, Memory

MOST = 100
"""Values of an answer: the protocol allows no more."""
VALUE_LIMIT = 4_096


class Completion:
    """The handler of `completion/complete`."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def __call__(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Gives what may stand in an argument and begins as it was typed; nothing for an argument that is free text."""
        found = await self._asking.answer(
            ctx, "complete", lambda memory, caller: _completed(memory, caller, params)
        )
        is_cut = len(found) > MOST
        return types.CompleteResult(completion=types.Completion(values=found[:MOST], has_more=is_cut))


def _completed(memory: Memory, caller: Caller, params: types.CompleteRequestParams) -> list[str]:
    name, value = params.argument.name, params.argument.value
    if len(value) > VALUE_LIMIT:
        raise Usage(
            "resource.argument",
            f"the value is longer than {VALUE_LIMIT} characters",
            hint="send the beginning of a path",
        )
    if isinstance(params.ref, types.ResourceTemplateReference):
        if params.ref.uri != TEMPLATE or name != "path":
            raise Usage("resource.argument", "there is no such template or variable", hint=f"use {TEMPLATE}")
        found = [path for start in typed(value) for path in _suggested(memory, caller, start)]
        return [value_of(path) for path in dict.fromkeys(found)]
    if (params.ref.name, name) not in COMPLETED:
        raise Usage("prompt.argument", "there is no such prompt or argument", hint="list the prompts")
    what = COMPLETED[params.ref.name, name]
    return what(_suggested(memory, caller, value)) if what else []


def _suggested(memory: Memory, caller: Caller, start: str) -> list[str]:
    return read.suggest(memory, caller, start, limit=MOST + 1)
