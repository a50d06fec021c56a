"""Commands in the docs exist, and commands in blocks of code work when they are pasted."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuota.cli import make_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
# A path in another folder is also allowed, as in a systemd unit.
INLINE = re.compile(r"`(?:[\w./-]+/)?cuota ([^`]+)`")


def blocks(text: str) -> Iterator[str]:
    """Yield the lines of fenced and of indented blocks of code."""
    for block in FENCED.findall(text):
        yield from block.splitlines()
    yield from (line for line in FENCED.sub("", text).splitlines() if line.startswith("    "))


def commands(text: str) -> Iterator[str]:
    """Yield the text after `cuota` of each command, in blocks and in the running text."""
    for line in blocks(text):
        found = re.match(r"\s*(?:[A-Z_]+=\S+ )*(?:[\w./-]+/)?cuota (.+)", line)
        if found:
            yield found[1]
    yield from (" ".join(found.split()) for found in INLINE.findall(FENCED.sub("", text)))


def wrong(text: str) -> str | None:
    """Return the error in a command line, or None. Values are in capital letters and are not checked."""
    words = text.partition(" #")[0].partition(" &")[0].split()
    parser: argparse.ArgumentParser = make_parser()
    for word in words:
        groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        if word.startswith("--"):
            option = word.partition("=")[0]
            if option not in parser._option_string_actions:
                return f"{parser.prog} has no {option}"
        elif groups and re.fullmatch(r"[a-z-]+", word):
            if word not in groups[0].choices:
                return f"{parser.prog} has no command {word}"
            parser = groups[0].choices[word]
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_the_docs_exists_with_its_options(page: Path) -> None:
    for text in commands(page.read_text()):
        # `a|b` and `[A]` stand for several commands, so they are not checked.
        if not re.search(r"[|\[\]…]|\.\.\.", text):
            assert wrong(text) is None, f"{page.name}: cuota {text}: {wrong(text)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_in_a_block_of_code_is_called_by_a_path_that_works_when_pasted(page: Path) -> None:
    for line in blocks(page.read_text()):
        bare = re.match(r"\s*(?:[A-Z_]+=\S+ )*cuota ", line)
        assert not bare, f"{page.name}: write .venv/bin/cuota in: {line}"


def test_the_check_finds_a_wrong_command_and_a_wrong_option() -> None:
    assert wrong("verify") is None
    assert wrong("time advance 6w --json") is None
    assert wrong('merchant create --name "My shop"') is None
    assert wrong("verifi") == "cuota has no command verifi"
    assert wrong("merchant make") == "cuota merchant has no command make"
    assert wrong("listen --merchants X") == "cuota listen has no --merchants"
