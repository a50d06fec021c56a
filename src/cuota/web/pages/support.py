"""Where a consumer asks the merchant a question: the links that the merchant set in its dashboard."""

from __future__ import annotations

from urllib.parse import quote

from cuota.web.pages.render import PageContext


def support_links(email: str | None, url: str | None) -> list[PageContext]:
    """Return the links to the merchant's support: its help page, and its e-mail address."""
    links: list[PageContext] = [{"label": "Help page", "url": url}] if url else []
    if email:
        links.append({"label": email, "url": f"mailto:{quote(email, safe='@.+-_')}"})
    return links
