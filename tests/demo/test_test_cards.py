"""The demo shop, which uses only the public API, lists the same test cards as the sandbox's own documentation."""

from __future__ import annotations

import re
from pathlib import Path

from cuota.core.sandbox import TEST_CARDS

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_and_the_documentation_list_every_test_card_and_no_other() -> None:
    cards = [card.number for card in TEST_CARDS]
    for path in ("demo/templates/base.html", "src/cuota/web/docs/openapi/root.yaml"):
        text = (ROOT / path).read_text("utf-8")
        assert re.findall(r"\b\d{4} \d{4} \d{4} \d{4}\b", text) == cards, path
