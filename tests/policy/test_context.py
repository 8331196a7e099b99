"""context.yaml: what it says, what it refuses, and edits that leave every other byte alone."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.errors import Invalid
from pcpd.policy.context import (
    ROLES,
    Context,
    Member,
    Partition,
    add_principal,
    parse_context,
    render_context,
    set_id,
)

EXAMPLE = b"""\
id: ctx_1763000000_a3f2b1c4      # names the device-local folders
version: "0.3"
controller: human:sam
features: [review]               # what `init` writes; see 5
principals:
  - {id: human:sam, role: controller}
  - {id: agent:claude, role: agent}
partitions:
  - {name: personal, description: "Everything by default", default: true}
  - {name: work, description: "..."}
profile: profile/me              # the page (or folder) that agents may be given first
"""

TWO_DEFAULTS = b"""\
id: ctx_1_a3f2b1c4
controller: human:sam
partitions:
  - {name: a, default: true}
  - {name: b, default: true}
"""

slugs = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,15}", fullmatch=True)
principal_names = st.one_of(
    names.map("human:{}".format),
    names.map("agent:{}".format),
    st.tuples(names, names).map(lambda pair: f"agent:{pair[0]}/{pair[1]}"),
    names.map("service:{}".format),
)
PROFILES = ["profile/me", "a b/日本", "x: y", "true", "1.0", "- a", "#b"]
texts = st.text(st.characters(codec="utf-8"), max_size=30)


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    """Any context that a program may write."""
    members = draw(st.lists(principal_names, max_size=4, unique=True))
    partitions = draw(st.lists(slugs, max_size=4, unique=True))
    default = draw(st.integers(-1, len(partitions) - 1))
    return Context(
        id=f"ctx_{draw(st.integers(0, 10**11))}_{draw(st.integers(0, 2**32 - 1)):08x}",
        version=draw(st.sampled_from(["0.3", "0.10", "1.0"])),
        controller=draw(principal_names),
        features=tuple(draw(st.lists(slugs, max_size=3))),
        principals=tuple(
            Member(name, draw(st.sampled_from(ROLES)), draw(st.sampled_from(["active", "removed"])))
            for name in members
        ),
        partitions=tuple(
            Partition(name, draw(texts), default=number == default) for number, name in enumerate(partitions)
        ),
        profile=draw(st.none() | st.sampled_from(PROFILES)),
    )


def problems_of(data: bytes) -> list[tuple[str, str, int]]:
    """Gives section, key and line of each problem that parsing names."""
    with pytest.raises(Invalid) as caught:
        parse_context(data)
    assert caught.value.code == "context.invalid"
    found = caught.value.details["problems"]
    assert isinstance(found, list)
    return [(problem["section"], problem["key"], problem["line"]) for problem in found]


def test_the_example_of_the_design_is_read() -> None:
    """Every key of pages.md section 4 arrives."""
    context = parse_context(EXAMPLE)
    assert context.id == "ctx_1763000000_a3f2b1c4"
    assert (context.version, context.controller, context.features) == ("0.3", "human:sam", ("review",))
    assert context.principals == (Member("human:sam", "controller"), Member("agent:claude", "agent"))
    assert [partition.name for partition in context.partitions] == ["personal", "work"]
    assert context.default_partition == "personal"
    assert context.profile == "profile/me"


@given(contexts())
def test_what_is_rendered_reads_back_the_same(context: Context) -> None:
    """Also for descriptions with quotes, line breaks, control characters and emoji."""
    assert parse_context(render_context(context)) == context


@given(contexts())
def test_a_second_parser_reads_the_strings_that_were_meant(context: Context) -> None:
    """Slugs such as `on`, `null` and `0123` are strings for PyYAML's own resolver as well."""
    read = yaml.safe_load(render_context(context))
    assert read["features"] == list(context.features)
    assert [entry["name"] for entry in read["partitions"]] == [part.name for part in context.partitions]
    assert [entry.get("description", "") for entry in read["partitions"]] == [
        part.description for part in context.partitions
    ]
    assert (read["version"], read["controller"]) == (context.version, context.controller)


def test_keys_that_are_not_known_are_no_error() -> None:
    """A later version's keys, at any place, do not stop this one."""
    data = EXAMPLE + b"devices: [{a: [1, {b: 2}]}]\n"
    assert parse_context(data.replace(b"role: agent}", b"role: agent, since: 2026-01-01}")) == parse_context(
        EXAMPLE
    )


def test_every_problem_is_named_at_once_with_section_key_and_line() -> None:
    """A person corrects the file in one go."""
    data = b"""\
id: ../../etc
controller: sam
features: review
principals:
  - 3
  - {id: agent:x, role: boss}
  - {role: agent}
partitions:
  - {name: Work}
  - {name: a, default: maybe}
profile: ../x
"""
    assert problems_of(data) == [
        ("", "id", 1),
        ("", "controller", 2),
        ("", "features", 3),
        ("principals[1]", "", 5),
        ("principals[1]", "id", 5),
        ("principals[1]", "role", 5),
        ("principals[2]", "role", 6),
        ("principals[3]", "id", 7),
        ("partitions[1]", "name", 9),
        ("partitions[2]", "default", 10),
        ("", "profile", 11),
    ]


@pytest.mark.parametrize(
    "id_",
    ["../x", "ctx_1_ABCDEF01", "ctx_1_a3f2b1c4/..", "", "ctx_1_a3f2b1c4\\n", "ctx_\u0661_a3f2b1c4", "~"],
)
def test_an_id_that_could_name_another_folder_is_refused(id_: str) -> None:
    """The id becomes a folder's name on this device, and the file comes from strangers."""
    assert ("", "id", 1) in problems_of(f'id: "{id_}"\ncontroller: human:sam\n'.encode())


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"id: ctx_1_a3f2b1c4\ncontroller: human:sam\nid: ctx_1_a3f2b1c5\n", 3),
        (b"id: ctx_1_a3f2b1c4\ncontroller: human:sam\nprincipals:\n- {id: human:a, role: agent, id: x}\n", 4),
        (b"id: ctx_1_a3f2b1c4\ncontroller: human:sam\npartitions: [{name: a},\n {name: a}]\n", 4),
        (TWO_DEFAULTS, 5),
    ],
)  # fmt: skip
def test_what_stands_twice_is_refused_with_its_line(data: bytes, line: int) -> None:
    """Of two keys, principals, partitions or defaults none is picked silently."""
    assert [found[2] for found in problems_of(data)] == [line]


@pytest.mark.parametrize("data", [b"", b"# only a comment\n", b"---\n", b"~\n"])
def test_an_empty_file_is_refused(data: bytes) -> None:
    """There is no context without id and controller."""
    assert len(problems_of(data)) == 1


def test_a_profile_is_a_path_without_its_ending() -> None:
    """`profile/me.md` and `profile/` are what people write for a page and a folder."""
    head = b"id: ctx_1_a3f2b1c4\ncontroller: human:sam\nprofile: "
    assert parse_context(head + b"profile/me.md\n").profile == "profile/me"
    assert parse_context(head + b"profile/\n").profile == "profile"


def test_adding_a_principal_adds_one_line() -> None:
    """Comments, spaces and all else stay."""
    after = add_principal(EXAMPLE, "agent:cursor/2.1", "agent")
    line = b"  - {id: agent:cursor/2.1, role: agent}\n"
    assert after == EXAMPLE.replace(b"partitions:\n", line + b"partitions:\n", 1)


def test_adding_a_principal_twice_changes_nothing() -> None:
    """Also one whose status is removed: taking somebody back is the person's own edit."""
    removed = EXAMPLE.replace(b"role: agent}", b"role: agent, status: removed}")
    assert add_principal(removed, "agent:claude", "agent") == removed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"principals:\n  - {ITEM}\n"),
        (b"principals:\n", b"principals:\n  - {ITEM}\n"),
        (b"principals: []\n", b"principals: [{ITEM}]\n"),
        (b"principals: [ ] # none\n", b"principals: [{ITEM} ] # none\n"),
        (b"principals: ~\n", b"principals: [{ITEM}]\n"),
        (
            b"principals: [{id: human:a, role: member}]\n",
            b"principals: [{id: human:a, role: member}, {ITEM}]\n",
        ),
        (
            b"principals:\n- id: human:a\n  role: member\n\n# the end\nx: 1\n",
            b"principals:\n- id: human:a\n  role: member\n- {ITEM}\n\n# the end\nx: 1\n",
        ),
        (
            b"principals:\n    - id: human:a # first\n      role: member # here",
            b"principals:\n    - id: human:a # first\n      role: member # here\n    - {ITEM}\n",
        ),
        (
            b"principals:\r\n  - {id: human:a, role: member}\r\nx: 1\r\n",
            b"principals:\r\n  - {id: human:a, role: member}\r\n  - {ITEM}\r\nx: 1\r\n",
        ),
        (
            b"principals:\n  - id: human:a\n    role: member\n    note: |\n      some\n      text\nx: 1\n",
            b"principals:\n  - id: human:a\n    role: member\n    note: |\n      some\n      text\n  - {ITEM}\nx: 1\n",
        ),
    ],
)
def test_a_principal_is_added_in_the_style_that_is_there(before: bytes, after: bytes) -> None:
    """Block and flow lists, missing keys, comments at the end, CRLF, no last line break."""
    head = b"id: ctx_1_a3f2b1c4\ncontroller: human:sam\n".replace(
        b"\n", b"\r\n" if b"\r\n" in before else b"\n"
    )
    wanted = head + after.replace(b"{ITEM}", b"{id: agent:x, role: agent}")
    assert add_principal(head + before, "agent:x", "agent") == wanted
    assert add_principal(b"\xef\xbb\xbf" + head + before, "agent:x", "agent") == b"\xef\xbb\xbf" + wanted


def test_a_principal_is_added_to_a_file_in_flow_style() -> None:
    """JSON is YAML too."""
    data = b'{"id": "ctx_1_a3f2b1c4", "controller": "human:sam", "x": "\xf0\x9f\x98\x80"}\n'
    after = add_principal(data, "agent:x", "agent")
    assert after == data.replace(b"}\n", b", principals: [{id: agent:x, role: agent}]}\n")


@given(contexts(), principal_names, st.sampled_from(ROLES), st.sampled_from(["\n", "\r\n"]))
def test_an_added_principal_is_the_only_change(context: Context, name: str, role: str, newline: str) -> None:
    """Every line that was there is there after it, in order."""
    before = render_context(context).replace(b"\n", newline.encode())
    after = add_principal(before, name, role)
    if any(member.id == name for member in context.principals):
        assert after == before
        return
    assert parse_context(after).principals == (*context.principals, Member(name, role))
    kept = [line for line in before.splitlines() if line != b"principals: []"]
    added = [line for line in after.splitlines() if line not in kept]
    assert len(added) == 1
    assert [line for line in after.splitlines() if line in kept] == kept


@pytest.mark.parametrize(("name", "role"), [("claude", "agent"), ("agent:a b", "agent"), ("agent:x", "king")])
def test_a_wrong_principal_or_role_is_not_added(name: str, role: str) -> None:
    """The file would not read back."""
    with pytest.raises(Invalid):
        add_principal(EXAMPLE, name, role)


def test_a_file_with_a_problem_is_never_edited() -> None:
    """Neither its valid part."""
    with pytest.raises(Invalid) as caught:
        add_principal(EXAMPLE + b"id: again\n", "agent:x", "agent")
    assert caught.value.code == "context.invalid"


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text("{}[]:-,#&*!|>'\"%@`\n \tab1~", max_size=120).map(str.encode))
def test_no_bytes_raise_anything_but_invalid(data: bytes) -> None:
    """The file arrives by git pull."""
    try:
        parse_context(data)
    except Invalid as error:
        assert error.code == "context.invalid"  # noqa: PT017  (most bytes are invalid, some are not)


def test_another_id_is_the_only_change() -> None:
    """A copied vault gets an id of its own; comments and all else stay."""
    other = "ctx_1763000001_00000000"
    assert set_id(EXAMPLE, other) == EXAMPLE.replace(b"ctx_1763000000_a3f2b1c4", other.encode())
    quoted = EXAMPLE.replace(b"id: ctx_1763000000_a3f2b1c4", b"\"id\" : 'ctx_1763000000_a3f2b1c4'")
    with pytest.raises(Invalid):
        set_id(quoted, other)
    with pytest.raises(Invalid):
        set_id(EXAMPLE, "../x")
