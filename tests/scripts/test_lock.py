"""The lock: one file of names, versions and hashes that matches pyproject.toml."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import environment  # noqa: E402

LOCK = environment.LOCK.read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def names(section: str) -> set[str]:
    """The packages that a section of the lock pins."""
    return {line.split("==")[0] for line in section.splitlines() if re.match(r"[a-z0-9]", line)}


def wanted(requirements: list[str]) -> set[str]:
    """The packages that requirements name, in the spelling that the lock uses."""
    return {re.sub(r"[-_.]+", "-", re.split(r"[<>=!~;\[ ]", text)[0]).lower() for text in requirements}


def test_lock_holds_names_versions_and_hashes_and_no_address() -> None:
    """No index, no link: whoever installs says where packages come from."""
    line = re.compile(
        r"[a-z0-9-]+(\[[a-z0-9,-]+\])?==[0-9][\w.+!]*( ; [^:/]+)? \\"
        r"|    --hash=sha256:[0-9a-f]{64}( \\)?|#.*|"
    )
    assert [text for text in LOCK.splitlines() if not line.fullmatch(text)] == []
    assert "://" not in LOCK


def test_every_pinned_package_has_a_hash() -> None:
    """pip refuses the lock as a whole when one is missing."""
    for entry in re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in entry, entry


def test_runtime_section_holds_what_pyproject_depends_on() -> None:
    """`scripts/run` installs this section alone, and setuptools, which installs the checkout."""
    runtime, development = environment.sections(LOCK)
    assert wanted(PYPROJECT["project"]["dependencies"]) | {"setuptools"} <= names(runtime)
    assert wanted(PYPROJECT["project"]["optional-dependencies"]["dev"]) <= names(development) | names(runtime)
    assert not names(runtime) & names(development)


def test_pinned_versions_are_those_that_pyproject_allows() -> None:
    """A bound that was raised without making the lock again is found here."""
    pins = dict(re.findall(r"^([a-z0-9-]+)==([^\s]+)", LOCK, re.MULTILINE))
    for text in PYPROJECT["project"]["dependencies"]:
        (name,) = wanted([text])
        for sign, bound in re.findall(r"(>=|<)([\d.]+)", text):
            pinned, limit = (tuple(int(n) for n in re.findall(r"\d+", v)) for v in (pins[name], bound))
            assert pinned >= limit if sign == ">=" else pinned < limit, text


def test_lock_without_marks_is_refused_with_the_cure() -> None:
    """A lock made by hand says how to make it right."""
    with pytest.raises(environment.SetUpError, match="scripts/lock"):
        environment.sections("click==8.1\n")
