"""The routes on which a business, its owners and its documents are entered, the same in both dashboards."""

from __future__ import annotations

from types import ModuleType

from cuota.web.server.route import Area, Route


def onboarding_routes(root: str, own: ModuleType, area: Area) -> tuple[Route, ...]:
    """Return the rows for a checklist at `root`. `own` has the dashboard's handlers."""
    owner, document = f"{root}/owners/{{owner_id}}", f"{root}/documents/{{document_id}}"
    return (
        Route("GET", root, own.checklist, area),
        Route("GET", f"{root}/business", own.business, area),
        Route("POST", f"{root}/business", own.save_business, area),
        Route("GET", f"{root}/owners", own.owners, area),
        Route("POST", f"{root}/owners", own.add_owner, area),
        Route("GET", owner, own.owner, area),
        Route("POST", owner, own.change_owner, area),
        Route("GET", f"{root}/documents", own.documents, area),
        Route("POST", f"{root}/documents", own.add_documents, area),
        Route("GET", document, own.document, area),
        Route("GET", f"{document}/remove", own.ask_remove, area),
        Route("POST", document, own.remove_document, area),
    )
