"""Code that the browser tests of both dashboards share."""

from __future__ import annotations

from cuota.web.server.route import Area, Route


def is_page(row: Route, area: Area) -> bool:
    """Return whether the route shows a page of the area at a fixed address. An export is a download, not a page."""
    fixed = "{" not in row.path and not row.path.endswith("/export")
    return row.area is area and "GET" in row.methods and fixed
