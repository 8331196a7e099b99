"""The other routes: finding pages, versions, consent and the owner itself, each answered by a real memory."""

from collections.abc import Callable

from tests.doors import Doors

PAGES = {
    "boiler.md": "---\ntitle: Boiler\ntags: [heat]\n---\nGas or heat pump? See [[house/pump]] and [[absent]].\n",
    "house/pump.md": "---\ntitle: Pump\n---\nThe heat pump.\n",
    "house/attic.md": "---\ntitle: [broken\n---\nCold.\n",
}


def test_search_answers_in_its_fixed_form(make_doors: Callable[..., Doors]) -> None:
    """Results in pieces to the very end, with a total."""
    doors = make_doors(PAGES)
    found = doors.vault("GET", "search?q=heat%20pump&limit=1").json()
    assert set(found) == {"results", "total", "cursor"}
    assert found["total"] == 2
    assert set(found["results"][0]) >= {"path", "title", "type", "snippet", "score"}
    rest = doors.vault("GET", f"search?q=heat%20pump&limit=1&cursor={found['cursor']}").json()
    assert {found["results"][0]["path"], rest["results"][0]["path"]} == {"boiler", "house/pump"}
    assert rest["cursor"] is None
    for odd in ("", "%22", "-", "a%20or", "%00", "%F0%9F%98%80", "type:", "*", "((("):
        assert doors.vault("GET", f"search?q={odd}").status == 200, odd


def test_lists_links_and_recent_pages(make_doors: Callable[..., Doors]) -> None:
    """Each names pages by path."""
    doors = make_doors(PAGES)
    listed = doors.vault("GET", "pages?folder=house&limit=1").json()
    assert (listed["total"], [page["path"] for page in listed["pages"]]) == (2, ["house/attic"])
    more = doors.vault("GET", f"pages?folder=house&limit=1&cursor={listed['cursor']}").json()
    assert [page["path"] for page in more["pages"]] == ["house/pump"]
    assert doors.vault("GET", "recent").json()["total"] == 3
    linked = doors.vault("GET", "links/boiler").json()
    assert "house/pump" in str(linked["outgoing"])
    assert "boiler" in str(doors.vault("GET", "links/house/pump").json()["backlinks"])


def test_consent_goes_round(doors: Doors) -> None:
    """A token is shown once, a grant is listed, and both are taken back."""
    made = doors.vault("POST", "tokens", body={"principal": "agent:x"}).json()
    assert set(made) == {"token", "id"}
    (listed,) = doors.vault("GET", "tokens").json()["tokens"]
    assert listed["id"] == made["id"]
    assert made["token"] not in str(listed)
    grant = {"principal": "agent:x", "rights": ["read"], "until": "2099-01-01"}
    assert doors.vault("POST", "grants", body=grant).json()["granted"] is True
    (given,) = doors.vault("GET", "grants").json()["grants"]
    assert (given["principal"], given["until"]) == ("agent:x", "2099-01-01T00:00:00Z")
    assert doors.vault("POST", "revoke", body={"principal": "agent:x"}).json() == {"grants": 1, "tokens": 1}
    assert doors.vault("GET", "grants").json()["grants"] == []


def test_owner_tells_how_it_is_and_proves_its_index(make_doors: Callable[..., Doors]) -> None:
    """Status, doctor and rebuild."""
    doors = make_doors(PAGES)
    status = doors.vault("GET", "status").json()
    assert (status["pages"], status["attachments"]) == (3, 0)  # `.pcp` is none of the person's files
    assert doors.vault("POST", "doctor", body={"deep": True}).json()["differences"] == []
    assert doors.vault("POST", "rebuild").status == 200
    assert doors.vault("GET", "search?q=heat").json()["total"] == 2
    assert doors.vault("POST", "accept", body={}).status == 200
    assert doors.ended == []


def test_handover_and_accepted_copy_end_the_owner(doors: Doors) -> None:
    """The version of who asks is passed on."""
    assert doors.vault("POST", "handover", body={"version": "9.9"}).json() == {"ends": True}
    assert doors.handed_over == ["9.9"]
