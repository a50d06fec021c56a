"""Texts for people are in American English, and one module formats their dates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The demo uses only the service's public API, so it has its own formatter of dates.
WRITES_DATES = {"src/cuota/core/dates.py", "demo/web.py"}
PAGES = sorted([*ROOT.glob("src/cuota/web/pages/templates/**/*.html"), *ROOT.glob("demo/templates/*.html")])
PROSE = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])
BRITISH = re.compile(
    r"\b(baskets?|instalments?|surnames?|given names?|expiry date|cancelled|cancelling|colours?|favou?rites?|behaviours?|"
    r"recognise[sd]?|authorise[sd]?|normalise[sd]?|catalogue|centres?|judgement|parcels?)\b",
    re.IGNORECASE,
)


def _of_page(text: str) -> str:
    """Return the text that a page shows: no tags and no template statements, but the quoted texts inside these."""
    statements = re.sub(r"{#.*?#}", " ", text, flags=re.DOTALL)
    quoted = re.findall(r'"([A-Z][^"]*)"', " ".join(re.findall(r"{[{%].*?[%}]}", statements, re.DOTALL)))
    bare = re.sub(r"{[{%].*?[%}]}|<[^>]*>", " ", statements, flags=re.DOTALL)
    return " ".join([bare, *quoted])


def _of_prose(text: str) -> str:
    """Return prose without code, because the names in the API keep their spelling."""
    return re.sub(r"```.*?```|`[^`\n]*`|\|[^|\n]*_[^|\n]*\|", " ", text, flags=re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_each_page_is_in_american_english(path: Path) -> None:
    assert BRITISH.findall(_of_page(path.read_text())) == []


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.stem)
def test_the_docs_are_in_american_english(path: Path) -> None:
    assert BRITISH.findall(_of_prose(path.read_text())) == []


def test_dates_for_people_are_written_in_one_place() -> None:
    sources = [*ROOT.glob("src/cuota/**/*.py"), *ROOT.glob("demo/*.py")]
    found = {
        str(path.relative_to(ROOT))
        for path in sources
        if re.search(r"%[aAbB][ ,}]|strftime\(\"%[aAbB]", path.read_text())
    }
    assert found == WRITES_DATES
