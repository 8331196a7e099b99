"""The route for Prometheus: how the owner works, and for the person how the vault is."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from pcpd import __version__
from pcpd.api import exposition, process
from pcpd.api.caller import CallerOf, OwnerOf, Served, in_thread
from pcpd.api.exposition import Family, one
from pcpd.api.meter import Meter
from pcpd.api.streams import Streams
from pcpd.memory.gauges import Gauges, gauges

ROUTE = "/metrics"

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Watched:
    """What is measured of one owner: its requests, its streams, and since when, in seconds since 1970."""

    meter: Meter
    streams: Streams
    started_at: float


@router.get(ROUTE)
async def metrics(request: Request, owner: OwnerOf, caller: CallerOf) -> Response:
    """Gives numbers in Prometheus' text format: of the owner to everybody with a token, of the vault to the person.

    No number names a page, a principal, a query or a token.
    """
    watched: Watched = request.app.state.watched
    families = [*_of_owner(owner), *watched.meter.families(), *_of_doors(request, watched)]
    if caller.principal.is_controller:
        families += _of_vault(await in_thread(owner, lambda: gauges(owner.memory), before_ready=True))
    families += process.families(watched.started_at)
    return Response(exposition.text(families), media_type=exposition.MEDIA_TYPE)


def _of_owner(owner: Served) -> Iterator[Family]:
    info = {"version": __version__, "python": platform.python_version(), "system": platform.system()}
    yield Family("pcpd_owner_info", "gauge", "What runs.", [(info, 1)])
    yield one("pcpd_ready", "gauge", "1 when the first scan is done.", owner.is_ready())


def _of_doors(request: Request, watched: Watched) -> Iterator[Family]:
    yield one("pcpd_event_streams_open", "gauge", "Streams of changes.", len(watched.streams))
    connections = request.scope["state"].get("connections")
    if connections is not None:
        yield one("pcpd_http_connections_open", "gauge", "Connections.", len(connections))


def _of_vault(now: Gauges) -> Iterator[Family]:
    yield one("pcpd_pages", "gauge", "Pages.", now.pages)
    yield one("pcpd_pages_proposed", "gauge", "Pages that are proposed or rejected.", now.proposed)
    yield one("pcpd_pages_with_problems", "gauge", "Pages with problems (`pcpd doctor`).", now.problems)
    yield one("pcpd_attachments", "gauge", "Other files.", now.attachments)
    yield one("pcpd_files_held", "gauge", "Vanished files that wait for `pcpd accept`.", now.held)
    yield one("pcpd_index_bytes", "gauge", "The index on disk.", now.index_bytes)
    yield one("pcpd_index_in_step", "gauge", "1 when the index is known to follow the vault.", now.in_step)
    yield one("pcpd_commits_waiting", "gauge", "Files whose version is not in git yet.", now.waiting)
    yield one("pcpd_commits_oldest_seconds", "gauge", "How long the first of them has waited.", now.oldest_s)
    if now.committed_at is not None:
        about = "This run's last commit, seconds since 1970."
        yield one("pcpd_last_commit_timestamp_seconds", "gauge", about, now.committed_at)
    yield one("pcpd_audit_rows", "gauge", "Rows of the audit trail.", now.audit_rows)
    yield one("pcpd_notices", "gauge", "Notices that want a person (`pcpd status`).", now.notices)
