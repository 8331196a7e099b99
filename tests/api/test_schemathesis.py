"""The API does what its description says, whatever is sent: schemathesis tries each route over real HTTP.

Requests that fit the description and requests that do not, as an agent over loopback and as the person on their
socket: no fault, no status, body, media type or header that is not described, and nothing malformed accepted.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode, checks
from schemathesis.core.result import Ok

from pcpd.api.app import ownerless
from pcpd.api.description import describe
from tests.doors import Doors

Operation = APIOperation[Any, Any, Any, Any]
Request = Case[Any]
EXAMPLES = 12
ENDLESS = "/vault/v1/events"
PAGES = {
    "house/boiler.md": "---\ntitle: Boiler\n---\n# Quotes\nGas or heat pump? [[roof]]\n",
    "house/roof.md": "---\ntags: [house]\nreview: {state: proposed}\n---\nLeaks. [[Cellar]]\n",
    "知识/π.md": "漢字\n",
}
NAMED = (None, "house/boiler", "roof", "知识/π")


def described() -> dict[str, Any]:
    """The description, without what never answers at once."""
    document = describe(ownerless().routes)
    del document["paths"][ENDLESS]
    audit = document["paths"]["/vault/v1/audit"]["get"]
    audit["parameters"] = [each for each in audit["parameters"] if each["name"] != "wait"]
    return document


SCHEMA = schemathesis.openapi.from_dict(described())
SCHEMA.config.generation.update(allow_extra_parameters=False, with_security_parameters=False)
# What is too long for the gate is refused before anybody looks at it.
REJECTED = ["400", "401", "403", "404", "412", "413", "414", "415", "422", "431"]
SCHEMA.config.checks.negative_data_rejection.expected_statuses = REJECTED
OPERATIONS: list[Operation] = [
    result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)
]
FOR_AGENTS = [each for each in OPERATIONS if not each.definition.raw.get("x-person-only")]


@pytest.fixture
def served(make_doors: Callable[..., Doors]) -> Doors:
    """A vault with some pages, and an agent that may do everything with them."""
    doors = make_doors(PAGES)
    doors.opened.agent("agent:claude", "read", "write", "review")
    return doors


@pytest.fixture
def forwarded(served: Doors) -> Iterator[str]:
    """The person's socket as an address on loopback, since HTTP libraries know no other."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=forward, args=(listening, served.http_socket), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def forward(listening: socket.socket, to: Path) -> None:
    """Passes on what comes and goes, until the listening socket is shut down."""
    with suppress(OSError):
        while True:
            here, _ = listening.accept()
            threading.Thread(target=join, args=(here, to), daemon=True).start()


def join(here: socket.socket, to: Path) -> None:
    """Passes bytes on in both directions, to the end of both."""
    with here, socket.socket(socket.AF_UNIX) as there:
        there.connect(str(to))
        back = threading.Thread(target=pump, args=(there, here), daemon=True)
        back.start()
        pump(here, there)
        back.join()


def pump(source: socket.socket, target: socket.socket) -> None:
    """Passes bytes on; what nobody takes any more is read to its end all the same, so that an answer gets through."""
    with suppress(OSError):
        while data := source.recv(65536):
            with suppress(OSError):
                target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def name_page(case: Request, page: str) -> None:
    """Has a request name a page that there is, where it names one: few drawn paths would."""
    for said in (case.path_parameters, case.body):
        if isinstance(said, dict) and "path" in said:
            said["path"] = page


def tried(operation: Operation, examples: int, ask: Callable[[Request], object]) -> None:
    """Draws requests that fit the description and, where something can be wrong, some that do not; asks each."""
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        names = st.sampled_from(NAMED) if mode is GenerationMode.POSITIVE else st.none()

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode), page=names)
        def holds(case: Request, page: str | None) -> None:
            if page is not None:
                name_page(case, page)
            ask(case)

        try:
            holds()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE


def without(operation: Operation, *names: str) -> list[Any]:
    """The checks that do not apply. What a cursor or a path means is not in its schema, and any text is a text."""
    text = {"negative_data_rejection"} if operation.label.startswith("PUT ") else set()
    return checks.CHECKS.get_by_names(sorted({"positive_data_acceptance", *names, *text}))


@pytest.mark.parametrize("operation", FOR_AGENTS, ids=lambda each: each.label)
def test_an_agent_is_answered_as_described_whatever_it_sends(
    served: Doors, operation: Operation, soak: int
) -> None:
    """Over TCP, with a token for everything; without one, or with another, nothing."""
    headers = {"Authorization": f"Bearer {served.token()}"}
    url = f"http://127.0.0.1:{served.port}"
    tried(
        operation,
        EXAMPLES * soak,
        lambda case: case.call_and_validate(
            base_url=url, headers=headers, excluded_checks=without(operation)
        ),
    )


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.label)
def test_the_person_is_answered_as_described_whatever_they_send(
    served: Doors, forwarded: str, operation: Operation, soak: int
) -> None:
    """On their socket, where they need no token."""
    tried(
        operation,
        EXAMPLES * soak,
        lambda case: case.call_and_validate(
            base_url=forwarded, excluded_checks=without(operation, "ignored_auth")
        ),
    )
