"""An entry comes into a client's file and goes out of it, and nothing else of the file changes."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd.client.entries import entries, put, take_out
from pcpd.client.jsonc import MalformedError, read

KEY, NAME = "mcpServers", "pcpd"
ENTRY = {"command": "/opt/pcpd", "args": ["--vault", "/home/säm/my notes", "mcp"], "env": {"PCPD_TOKEN": "t"}}


def parse(text: str) -> Any:
    """What the text says, by another way: comments and trailing commas are cut out first; None for nothing."""
    pieces: list[str] = []
    for found in re.finditer(
        r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[^\s/"]', text.removeprefix("\ufeff"), re.DOTALL
    ):
        if found[0].startswith(("//", "/*")):
            continue
        if found[0] in {"}", "]"} and pieces and pieces[-1] == ",":
            pieces.pop()
        pieces.append(found[0])
    return json.loads("".join(pieces)) if pieces else None


space = st.sampled_from(
    ["", "", " ", "\n", "\r\n", "\t", "\n  ", "\n    ", " /* n, } */ ", ' // "x": {\n', "\n/**/\n"]
)
plain_space = st.sampled_from(["", "", " ", "\n", "\t", "\n  ", "\n    "])
words = st.sampled_from(
    ["a", "mcp", "mcpServerz", "pcpd2", "ключ", 'q"uote', "//x", "/*", "a,}", "\u2028", ""]
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(0, 1), words)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def written(draw: st.DrawFn, value: object, gaps: Any, commas: bool) -> str:
    """A value as somebody wrote it: any space, comments and commas."""

    def gap() -> str:
        return str(draw(gaps))

    if isinstance(value, dict):
        items = [
            f"{gap()}{json.dumps(key, ensure_ascii=draw(st.booleans()))}{gap()}:{gap()}"
            + draw(written(each, gaps, commas))
            + gap()
            for key, each in value.items()
        ]
        opening, closing = "{", "}"
    elif isinstance(value, list):
        items = [f"{gap()}{draw(written(each, gaps, commas))}{gap()}" for each in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    tail = f",{gap()}" if commas and items and draw(st.booleans()) else gap() if not items else ""
    return opening + ",".join(items) + tail + closing


@st.composite
def files(draw: st.DrawFn) -> str:
    """A client's file: with and without other servers, one of ours, comments, a byte order mark."""
    has_notes = draw(st.booleans())
    gaps = space if has_notes else plain_space
    root = draw(st.dictionaries(words, values, max_size=3))
    if draw(st.booleans()):
        servers: Any = draw(
            st.none() | st.dictionaries(words, st.dictionaries(words, values, max_size=2), max_size=3)
        )
        if servers is not None and draw(st.booleans()):
            servers = {**servers, NAME: draw(values)}
        place = draw(st.integers(0, len(root)))
        items = list(root.items())
        root = dict([*items[:place], (KEY, servers), *items[place:]])
    if not root and draw(st.booleans()):
        return draw(st.sampled_from(["", " ", "\n", "// nothing yet", "/* a */\r\n", "\ufeff"]))
    lead = draw(st.sampled_from(["", "\ufeff"]))
    return f"{lead}{draw(gaps)}{draw(written(root, gaps, has_notes))}{draw(gaps)}"


def without_entry(text: str) -> Any:
    """What a file says but for our entry: no servers, none yet and `null` being the same."""
    root = parse(text) or {}
    servers = {name: each for name, each in (root.pop(KEY, None) or {}).items() if name != NAME}
    return root, servers


@given(files())
def test_an_entry_is_added_or_replaced_and_the_rest_reads_as_before(text: str) -> None:
    """Whatever spaces, comments, commas, line ends and other servers there are."""
    after, _ = put(text, KEY, NAME, ENTRY)
    assert parse(after)[KEY][NAME] == ENTRY
    assert without_entry(after) == without_entry(text)
    assert read(after, KEY).is_plain == read(text, KEY).is_plain
    assert {each.name: each.value for each in entries(after, KEY)}[NAME] == ENTRY


@given(files())
def test_what_was_put_in_is_taken_out_to_the_last_character(text: str) -> None:
    """Also when the entry itself was replaced meanwhile, as by a second connect."""
    after, trace = put(text, KEY, NAME, ENTRY)
    assert take_out(after, KEY, NAME, trace) == text
    again, _ = put(after, KEY, NAME, {"command": "other"})
    assert take_out(again, KEY, NAME, trace) == text


@given(files())
def test_every_other_character_stays(text: str) -> None:
    """What is before and behind the edit is the file's own, and so is each comment and comma within."""
    after, trace = put(text, KEY, NAME, ENTRY)
    start = after.rindex("{", 0, after.index('"command"'))
    at = start - len(trace.prefix)
    behind = len(text) - at - len(trace.old)
    assert after[:at] == text[:at]
    assert after[len(after) - behind :] == text[len(text) - behind :]
    new = trace.prefix + after[start : len(after) - behind]
    is_replaced = not trace.prefix or trace.old == "null"
    left = iter(new)
    assert is_replaced or all(each in left for each in trace.old if not each.isspace())


@given(files(), st.data())
def test_taken_out_after_others_changed_the_file_leaves_what_they_say(text: str, data: st.DataObject) -> None:
    """Other servers come and go around ours, before and behind it; keys are added to the file."""
    after, trace = put(text, KEY, NAME, ENTRY)
    for name in data.draw(st.lists(st.sampled_from(["x", "y", "z"]), max_size=3)):
        after, _ = put(after, KEY, name, {"command": name})
    for name in data.draw(st.lists(st.sampled_from(["x", "a", "mcp", "pcpd2"]), max_size=2)):
        after = take_out(after, KEY, name)
    if data.draw(st.booleans()):
        after = (
            re.sub(r"(?m)^(\ufeff?[ \t]*)\{", r'\1{ "first": 1, ', after, count=1) if parse(after) else after
        )
    if data.draw(st.booleans()):
        after = after.replace('"PCPD_TOKEN"', '"PCPD_TOKEN" /* mine */')
    rest = without_entry(after)
    former = ((parse(text) or {}).get(KEY) or {}).get(NAME)
    gone = take_out(after, KEY, NAME, trace)
    assert without_entry(gone) == rest
    assert ((parse(gone) or {}).get(KEY) or {}).get(NAME) == former
    assert read(gone, KEY).is_plain or not read(after, KEY).is_plain or not read(text, KEY).is_plain
    plain = take_out(after, KEY, NAME)
    assert read(plain, KEY).is_plain or not read(after, KEY).is_plain
    assert without_entry(plain) == rest
    assert NAME not in parse(plain)[KEY]


EXAMPLES = [
    ("", '{\n  "mcpServers": {\n    "pcpd": {\n      "command": "p"\n    }\n  }\n}\n'),
    ("{}", '{\n  "mcpServers": {\n    "pcpd": {\n      "command": "p"\n    }\n  }\n}'),
    ('{"a":1}', '{"a":1,"mcpServers":{"pcpd":{"command":"p"}}}'),
    ('{"a": 1}', '{"a": 1, "mcpServers": {"pcpd": {"command": "p"}}}'),
    (
        '{\r\n\t"mcpServers": {\r\n\t\t"x": {}, // me\r\n\t},\r\n}',
        '{\r\n\t"mcpServers": {\r\n\t\t"x": {}, // me\r\n\t\t"pcpd": {\r\n\t\t\t"command": "p"\r\n\t\t},\r\n\t},\r\n}',
    ),
    (
        '{\n   "mcpServers": {\n      "x": {} // mine\n   }\n}\n',
        '{\n   "mcpServers": {\n      "x": {}, // mine\n      "pcpd": {\n         "command": "p"\n      }\n   }\n}\n',
    ),
    (
        '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
        '{\n  "mcpServers": {\n    // none yet\n    "pcpd": {\n      "command": "p"\n    }\n  }\n}\n',
    ),
]


@pytest.mark.parametrize(("text", "wanted"), EXAMPLES)
def test_an_entry_is_laid_out_like_its_neighbours(text: str, wanted: str) -> None:
    """Indentation, line ends and trailing commas are the file's own."""
    assert put(text, KEY, NAME, {"command": "p"})[0] == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,\n "b" 2}', "line 2, column 6: a colon is missing"),
        ('{"a": 1\r\n "b": 2}', "line 2, column 2: a comma is missing"),
        ("\ufeff[1]", "line 1, column 1: an object must stand here"),
        ('{"mcpServers": []}', "line 1, column 16: the value of mcpServers must be an object"),
        ('{"mcpServers": {}, "mcpServers": {}}', "line 1, column 20: this key stands here a second time"),
        (
            '{"mcpServers": {}, "mcp\\u0053ervers": {}}',
            "line 1, column 20: this key stands here a second time",
        ),
        ('{"mcpServers": {"pcpd": 1, "pcpd": 2}}', "line 1, column 28: this key stands here a second time"),
        ('{"a": "secret', "line 1, column 7: this string does not end, or holds what a JSON string cannot"),
        ('{"a": /* secret', "line 1, column 7: this comment does not end"),
        ("{'a': 1}", "line 1, column 2: this is no JSON"),
        ('{"a": 1', "line 1, column 8: the file ends in the middle"),
        ('{"a": [1}', "line 1, column 9: a bracket of the other kind is missing"),
        ("{} {}", "line 1, column 4: nothing may follow the value"),
        ('{"a": 01}', "line 1, column 7: this is no JSON"),
        ('{"a":}', "line 1, column 6: a value is missing"),
        ("{,}", "line 1, column 2: a key in double quotes is missing"),
        ('{"a": NaN}', "line 1, column 7: this is no JSON"),
        ('{"mcpServers": {"a": ' + "[" * 200_000, "line 1, column 200022: the file ends in the middle"),
    ],
)
def test_what_is_no_json_is_named_by_line_and_column_and_not_quoted(text: str, said: str) -> None:
    """So also a key that stands there twice: programs differ in which of the two they take."""
    for act in (lambda: put(text, KEY, NAME, ENTRY), lambda: take_out(text, KEY, NAME)):
        with pytest.raises(MalformedError) as refused:
            act()
        assert str(refused.value) == said


def test_a_file_of_any_depth_and_many_keys_is_edited() -> None:
    """50,000 brackets, 50,000 keys beside ours, a number of 10,000 digits, 10 MB of text: all stay as they are."""
    deep = "[" * 50_000 + "]" * 50_000
    many = ", ".join(f'"k{n}": {n}' for n in range(50_000)) + f', "long": "{"x" * 10_000_000}"'
    text = f'{{"deep": {deep}, {many}, "mcpServers": {{"deep": {deep}, "n": {"9" * 10_000}}}}}'
    after, trace = put(text, KEY, NAME, ENTRY)
    assert after.replace(trace.prefix, "", 1).startswith(text[:-2])
    assert [each.name for each in entries(after, KEY)] == ["deep", "n", "pcpd"]
    assert take_out(after, KEY, NAME, trace) == text
    assert take_out(after, KEY, NAME) == text


@given(st.text(alphabet='{}[]:,"\\/*ntu0-1 \n', max_size=40))
def test_no_text_ends_the_reader_otherwise_than_in_an_answer_or_a_place(text: str) -> None:
    """What is taken, the strict reader takes too once comments and trailing commas are gone."""
    refused = ""
    try:
        read(text, KEY)
    except MalformedError as error:
        refused = str(error)
    if refused:
        assert re.match(r"line \d+, column \d+: ", refused)
    else:
        parse(text)


def test_a_note_up_to_the_line_s_end_swallows_nothing() -> None:
    """What stands behind our entry on its line is not left behind such a note when the entry goes."""
    after, trace = put('{\n  "a": 1 // note\n}', KEY, NAME, {})
    joined = after.replace("\n}", ', "b": 2\n}')
    assert parse(take_out(joined, KEY, NAME, trace)) == {"a": 1, KEY: {}, "b": 2}
    text = '{"mcpServers": {\n"x": {}, // note\n"pcpd": {}}}'
    assert parse(take_out(text, KEY, NAME)) == {KEY: {"x": {}}}
    text = '{"mcpServers": {// note\r\n"pcpd": {}, "x": {}}}'
    assert parse(take_out(text, KEY, NAME)) == {KEY: {"x": {}}}
