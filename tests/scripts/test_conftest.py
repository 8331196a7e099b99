"""What the tests share does what it says: skips by name, soaks, and keeps the person's home out of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ODD = """
import os, pytest
from hypothesis import given, settings, strategies as st

@pytest.mark.needs("nosuchprogram")
def test_needs(): raise AssertionError

@settings(max_examples=3)
@given(st.integers())
def test_random(n): pass

def test_history(soak): assert soak == int(os.environ["PCPD_SOAK"])

def test_home(): assert "pcpd-home-" in os.environ["HOME"]
"""


def run(folder: Path, text: str, *options: str, soak: str = "1") -> tuple[int, str]:
    """Runs tests of their own under the shared conftest; gives the exit status and what was printed."""
    (folder / "test_odd.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", folder, "-p", "tests.conftest",
         "-p", "no:cacheprovider", *options, folder],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT), "PCPD_SOAK": soak},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_missing_program_skips_its_tests_and_is_counted_by_name(tmp_path: Path) -> None:
    """A run says what it could not try; CI takes that for no failure."""
    status, said = run(tmp_path, ODD, "--strict-skips")
    assert "skipped 1 for want of nosuchprogram" in said
    assert status == 0, said


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_skip_for_another_reason_fails_a_strict_run(tmp_path: Path, workers: list[str]) -> None:
    """A test that quietly skips itself is not a test that held."""
    text = "import pytest\ndef test_odd(): pytest.skip('not today')\n"
    assert run(tmp_path, text, *workers)[0] == 0
    status, said = run(tmp_path, text, "--strict-skips", *workers)
    assert (status, "not today" in said) == (1, True)


def test_soak_runs_random_tests_alone_and_longer(tmp_path: Path) -> None:
    """Hypothesis' examples are multiplied; random histories read the factor."""
    status, said = run(tmp_path, ODD, "-m", "soak", soak="7")
    assert status == 0, said
    assert "2 random tests held, 7 times longer" in said
    assert "up to 21 examples" in said


def test_unprivileged_test_may_not_do_what_root_may(unprivileged: Path) -> None:
    """Permissions mean something, whoever runs the tests."""
    (unprivileged / "closed").mkdir(mode=0)
    with pytest.raises(PermissionError):
        os.listdir(unprivileged / "closed")  # noqa: PTH208
