"""Search: in the process beside raw FTS5, over MCP, in Chinese and Japanese; and the answers it finds."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmark import limits
from benchmark.machine import median, p95, timed
from benchmark.person import ROOT, Agent, Person
from benchmark.report import Row
from pcpd.index.search import search
from pcpd.index.store import Index
from pcpd.policy.decide import Visibility

ROUNDS = 4
CJK = ("蝶番", "番図", "図鑑")
"""Two-letter parts of the phrase that make_vault.py plants on 1 page in 250."""


def queries(vault: Path) -> dict[str, list[str]]:
    """Draws queries of each kind from the vault's own words."""
    counts: dict[str, int] = {}
    for file in sorted(vault.rglob("*.md"))[::5]:
        for word in set(file.read_text(encoding="utf-8").lower().split()):
            if word.isascii() and word.isalpha() and len(word) > 2:
                counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    rare = [word for word in ranked if counts[word] == 2][:40]
    middling = [word for word in ranked if 10 <= counts[word] <= 60][:60]
    return {
        "a rare word": rare,
        "three words": [" ".join(middling[start : start + 3]) for start in range(0, 60, 3)],
        "a common word": ranked[:10],
        "a 2-letter prefix": [f"{word[:2]}*" for word in middling[:20]],
    }


def in_process(vault: Path, state: Path, database: Path, pages: int) -> list[Row]:
    """Times pcpd's search and plain FTS5 (bm25 and snippet of 20) on the same words."""
    with sqlite3.connect(database) as bare:
        bare.executescript(limits.PLAIN)
    rows = []
    index = Index.open(state)
    everything = Visibility(everything=True, hidden=True)
    try:
        with index.reader() as conn:
            for kind, words in queries(vault).items():
                ours = _times(words, lambda word: search(conn, word, everything, limit=20, cursor=None))
                raw = _times(words, lambda word: bare.execute(limits.RAW_SEARCH, (word,)).fetchall())
                flat = kind in ("a common word", "a 2-letter prefix") and pages > 10_000
                bound = 30 if flat else 1.5 * raw + 2
                goal = "≤ 30 ms" if flat else "≤ 1.5 × raw + 2 ms"
                note = "limit: plain FTS5, bm25 and snippet"
                rows.append(
                    Row(
                        f"search in the process, {kind}, p95",
                        pages,
                        ours,
                        raw,
                        "ms",
                        goal,
                        ours <= bound,
                        note,
                    )
                )
            rows += _cjk(
                vault, pages, lambda text: search(conn, text, everything, limit=1000, cursor=None).total
            )
    finally:
        index.close()
        bare.close()
    return rows


def alone(state: Path, words: Sequence[str], limit: int) -> float:
    """Gives the milliseconds of a search in the process, the median, where no owner runs."""
    everything = Visibility(everything=True, hidden=True)
    index = Index.open(state)
    try:
        with index.reader() as conn:
            taken = [
                timed(lambda word: search(conn, word, everything, limit=limit, cursor=None), word)
                for word in [*words] * ROUNDS
            ]
    finally:
        index.close()
    return median(taken)


def _times(words: Sequence[str], ask: Callable[[str], object]) -> float:
    for word in words:
        ask(word)
    return p95([timed(ask, word) for _ in range(ROUNDS) for word in words])


def _cjk(vault: Path, pages: int, total: Callable[[str], int]) -> list[Row]:
    texts = [file.read_text(encoding="utf-8") for file in vault.rglob("*.md")]
    wanted = {part: sum(part in text for text in texts) for part in CJK}
    found = {part: total(part) for part in CJK}
    took = p95([timed(total, part) for _ in range(10) for part in CJK])
    right = found == wanted
    note = f"{sum(found.values())} of {sum(wanted.values())} found"
    return [
        Row(
            "two CJK characters, p95",
            pages,
            took,
            None,
            "ms",
            "all found, ≤ 20 ms",
            right and took <= 20,
            note,
        )
    ]


def over_mcp(person: Person, vault: Path, pages: int, inside: Sequence[Row]) -> list[Row]:
    """Asks the same over stdio; the figure of the same kind in the process is what it is held against."""
    rows = []
    with person.owner(vault):
        agent = Agent(person, vault, "agent:bench")
        for (kind, words), row in zip(queries(vault).items(), inside, strict=False):
            took = _times(words, agent.search)
            goal = "≤ in process + 2 ms"
            what = f"search over MCP, {kind}, p95"
            rows.append(
                Row(what, pages, took, row.ours, "ms", goal, took <= row.ours + 2, "limit: in process")
            )
        agent.close()
    return rows


def recall(person: Person, conversations: Path, work: Path) -> list[Row]:
    """Makes a vault of conversations and asks each question; recall.py scores the answers."""
    out = work / "recall"
    _run_recall("make", conversations, out)
    person.pcpd("init", out / "vault")
    with person.owner(out / "vault"):
        pass  # it says that it is ready when every page is indexed
    files = [json.loads(line) for line in (out / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    index = Index.open(state_of(person, out / "vault"))
    everything = Visibility(everything=True, hidden=True)
    with index.reader() as conn:

        def ours(text: str) -> list[str]:
            return [hit.path for hit in search(conn, text, everything, limit=10, cursor=None).results]

        at5, mrr = _scored(out, files, ours)
    index.close()
    least_at5, least_mrr = _scored(out, files, _plain_bm25(out / "vault"))
    note = f"{len(files)} questions; limit: plain BM25 over pages, stemmed"
    pages = sum(1 for _ in (out / "vault").rglob("*.md"))
    return [
        Row("answers found: recall@5", pages, at5, least_at5, "", "≥ 0.845", at5 >= 0.845, note),
        Row("answers found: MRR", pages, mrr, least_mrr, "", "≥ 0.78", mrr >= 0.78),
    ]


def _plain_bm25(vault: Path) -> Callable[[str], list[str]]:
    """Gives a search by FTS5 alone: every word of the question, any of them, stemmed by Porter."""
    conn = sqlite3.connect(":memory:")
    conn.execute("CREATE VIRTUAL TABLE plain USING fts5(path UNINDEXED, body, tokenize = 'porter unicode61')")
    for file in vault.rglob("*.md"):
        path = str(file.relative_to(vault).with_suffix(""))
        conn.execute("INSERT INTO plain VALUES (?, ?)", (path, file.read_text(encoding="utf-8")))

    def ask(text: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        rows = conn.execute("SELECT path FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 10", (words,))
        return [str(row[0]) for row in rows]

    return ask


def _scored(
    out: Path, questions: Sequence[Mapping[str, str]], ask: Callable[[str], list[str]]
) -> tuple[float, float]:
    """Asks every question and gives recall@5 and the mean reciprocal rank."""
    answers = [{"id": question["id"], "paths": ask(question["query"])} for question in questions]
    results = out / "results.jsonl"
    results.write_text("".join(json.dumps(answer) + "\n" for answer in answers), encoding="utf-8")
    said = _run_recall("score", out, results)
    at5, mrr = (float(said.split(f"{name} ")[1].split()[0]) for name in ("recall@5", "MRR"))
    return at5, mrr


def _run_recall(*arguments: str | Path) -> str:
    command = [sys.executable, str(ROOT / "scripts" / "recall.py"), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def state_of(person: Person, vault: Path) -> Path:
    """Gives the state folder of a vault on this person's device."""
    id_line = next(
        line for line in (vault / ".pcp" / "context.yaml").read_text(encoding="utf-8").splitlines()
        if line.startswith("id:")
    )  # fmt: skip
    return person.home / "state" / "pcpd" / id_line.split()[1].strip("\"'")
