"""pyproject.toml lists the unused names that are allowed. `make check` finds all others."""

from __future__ import annotations

import tomllib
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parents[2]


def test_each_name_in_the_list_is_really_unused() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["vulture"]
    finder = Vulture()
    finder.scavenge([ROOT / path for path in settings["paths"]])
    unused = {item.name for item in finder.get_unused_code()}
    assert set(settings["ignore_names"]) <= unused, "a name in [tool.vulture] is used: take it off the list"
