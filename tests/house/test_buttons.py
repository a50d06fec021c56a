"""A button that becomes busy is disabled when its form is sent, so its name and value would not be sent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(ROOT.glob("src/cuota/web/pages/templates/**/*.html"))
BUTTON = re.compile(r"<button\b[^>]*>")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_button_that_becomes_busy_has_no_name(path: Path) -> None:
    wrong = [
        tag for tag in BUTTON.findall(path.read_text()) if "data-busy=" in tag and re.search(r"\sname=", tag)
    ]
    assert not wrong, "Use a hidden field in place of the button's name and value."
