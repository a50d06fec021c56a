"""Converts the guides from Markdown to HTML. Headings get anchors, and links to files that are not served are removed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

Resolve = Callable[[str, str], tuple[str, str] | None]
"""Takes a link's address and text. Returns the address and text to show, or None if the address is not served."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a guide. `level` is 1 to 6, and `anchor` the id that links can point to."""

    level: int
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class DocsPage:
    """A guide as HTML, with its title (the first heading) and its other headings."""

    title: str
    html: str
    headings: Sequence[Heading]


# Raw HTML in a guide is shown as text, because the guides need none.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")


def inline(text: str) -> str:
    """Convert one line of Markdown to HTML, without a paragraph around it."""
    return str(_PARSER.renderInline(text))


def blocks(text: str) -> str:
    """Convert Markdown paragraphs and lists to HTML."""
    return str(_PARSER.render(text))


def render(text: str, resolve: Resolve) -> DocsPage:
    """Convert a whole guide. `resolve` rewrites or removes its links."""
    tokens = _PARSER.parse(text)
    headings = _anchor_headings(tokens)
    for token in tokens:
        if token.type == "inline" and token.children:
            token.children = _resolved(token.children, resolve)
    html = str(_PARSER.renderer.render(tokens, _PARSER.options, {}))
    # An empty heading cell (the corner of a table) must not count as a heading for screen readers.
    html = html.replace("<th></th>", "<td></td>").replace("</table>", "</table></div>")
    # Put each table into a box that scrolls, also by keyboard, if the table is wider than the screen.
    before, *tables = html.split("<table>")
    for number, table in enumerate(tables, start=1):
        box = f'<div class="wide" tabindex="0" role="region" aria-label="Table {number}">'
        before = f"{before}{box}<table>{table}"
    return DocsPage(headings[0].text if headings else "", before, headings[1:])


def slug(text: str) -> str:
    """Return the anchor of a heading. GitHub makes the same anchors, so links work in both places."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _anchor_headings(tokens: Sequence[Token]) -> list[Heading]:
    found: list[Heading] = []
    counts: dict[str, int] = {}
    for opening, content in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = "".join(
            child.content for child in content.children or () if child.type in {"text", "code_inline"}
        )
        anchor = slug(text)
        counts[anchor] = counts.get(anchor, -1) + 1
        if counts[anchor]:
            anchor = f"{anchor}-{counts[anchor]}"
        opening.attrSet("id", anchor)
        found.append(Heading(int(opening.tag[1]), anchor, text))
    return found


def _resolved(children: Sequence[Token], resolve: Resolve) -> list[Token]:
    """Rewrite the links in these tokens. A link to a file that is not served is replaced by its text."""
    tokens: list[Token] = []
    dropped = 0
    for index, token in enumerate(children):
        if token.type == "link_open":
            shown = resolve(str(token.attrGet("href")), children[index + 1].content)
            if shown is None:
                dropped += 1
                continue
            token.attrSet("href", shown[0])
            children[index + 1].content = shown[1]
        elif token.type == "link_close" and dropped:
            dropped -= 1
            continue
        tokens.append(token)
    return tokens
