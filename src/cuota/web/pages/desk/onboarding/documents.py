"""The page for sending documents."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.dispute.evidence_file import check_files
from cuota.core.onboarding.document import DOCUMENT_WORDS, MOST_DOCUMENTS, DocumentKind, MerchantDocument
from cuota.core.onboarding.problem import BadOnboarding
from cuota.flows.onboarding.change_checklist import Hand
from cuota.flows.onboarding.keep_documents import add_documents, read_document, remove_document
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.dispute_view import size_words
from cuota.web.pages.desk.onboarding.doing import done
from cuota.web.pages.desk.onboarding.place import OnboardingPlace
from cuota.web.pages.desk.view import when
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_LEAD = "For example: the registration, the letter with the EIN, and an ID of each owner."


def document_row(each: MerchantDocument, root: str, *, theirs: bool) -> PageContext:
    """Return the values of one document. The merchant's people do not see which person of the operator sent it."""
    return {
        "kind": DOCUMENT_WORDS[each.kind],
        "name": each.name,
        "size": size_words(each.size),
        "sent": when(each.sent_at),
        "sender": "" if theirs else each.sender,
        "address": f"{root}/documents/{each.document_id}",
    }


async def listed(request: Request, place: OnboardingPlace) -> Response:
    """List the documents, with a form to send more."""
    return await _page(request, place)


async def _page(request: Request, place: OnboardingPlace, errors: dict[str, str] | None = None) -> Response:
    found = (await read_checklist(service_of(request).context, place.merchant_id)).facts.documents
    shown = place.shown(
        "Documents", _LEAD, {"kind": DocumentKind.REGISTRATION.value}, errors,
        documents=[document_row(each, place.root, theirs=place.theirs) for each in found],
        kinds=[{"value": each.value, "label": label} for each, label in DOCUMENT_WORDS.items()],
        files_again=bool(place.files), full=len(found) >= MOST_DOCUMENTS,
    )  # fmt: skip
    return page(request, "onboarding/documents.html", shown, status=400 if errors else 200)


async def add(request: Request, place: OnboardingPlace) -> Response:
    """Store the files. Their type is determined by their content, like that of evidence."""
    kind = place.form.get("kind", "")

    async def change(hand: Hand) -> None:
        if kind not in set(DocumentKind):
            raise BadOnboarding.of("Choose what the document proves.", "kind")
        files = await asyncio.to_thread(check_files, place.files)
        context = service_of(request).context
        await add_documents(context, place.merchant_id, hand, DocumentKind(kind), files)

    if errors := await done(place, change):
        return await _page(request, place, errors)
    return see_other(f"{place.root}/documents?said=sent")


async def find(request: Request, place: OnboardingPlace) -> EvidenceFile:
    """Return the document in the path with its content. Raises Stop with the 404 page."""
    document_id = place.id_in_path(request, "document_id")
    found = await read_document(service_of(request).context, place.merchant_id, document_id)
    if found is None:
        raise Stop(place.missing())
    return found


async def ask_remove(request: Request, place: OnboardingPlace) -> Response:
    """Ask for a confirmation before a document is deleted."""
    return await _remove_page(request, place)


async def _remove_page(
    request: Request, place: OnboardingPlace, errors: dict[str, str] | None = None
) -> Response:
    found, document_id = await find(request, place), place.id_in_path(request, "document_id")
    shown = place.shown(f"Remove {found.name}", "", {}, errors, document_id=str(document_id))
    return page(request, "onboarding/remove.html", shown, status=400 if errors else 200)


async def remove(request: Request, place: OnboardingPlace) -> Response:
    """Remove a document."""
    await find(request, place)
    document_id, context = place.id_in_path(request, "document_id"), service_of(request).context

    async def change(hand: Hand) -> None:
        await remove_document(context, place.merchant_id, hand, document_id)

    if errors := await done(place, change):
        return await _remove_page(request, place, errors)
    return see_other(f"{place.root}/documents?said=gone")
