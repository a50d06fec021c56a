"""The stored data of each checklist item, as sections of a page."""

from __future__ import annotations

from cuota.core.onboarding.business import BUSINESS_WORDS, Business
from cuota.core.onboarding.checklist import Item
from cuota.core.onboarding.document import DOCUMENT_WORDS
from cuota.core.onboarding.screening import SUBJECT_WORDS, Finding, FindingState
from cuota.core.operator.mask import masked_name
from cuota.core.payout.percent import percent_text
from cuota.flows.context import Context
from cuota.flows.onboarding.read_checklist import OpenedOnboarding
from cuota.flows.onboarding.screen_names import NO_SCREENING_RAIL
from cuota.web.pages.desk.dispute_view import size_words
from cuota.web.pages.desk.view import day_of, when
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.render import PageContext

FINDING_WORDS = {
    FindingState.OPEN: ("To decide", "bad"),
    FindingState.CLEARED: ("Cleared", "done"),
    FindingState.CONFIRMED: ("Confirmed", "bad"),
}


def item_sections(
    context: Context, opened: OpenedOnboarding, which: Item, root: str, *, decides: bool, revealed: bool
) -> list[PageContext]:
    """Return the sections of an item. `decides`: the person may open documents and see the whole EIN."""
    facts = opened.facts
    if which is Item.BUSINESS:
        return [section(pairs=_business(facts.business, whole=decides))] if facts.business else []
    if which is Item.OWNERS:
        return [_owners(opened, revealed=revealed)]
    if which is Item.BANK:
        return [_bank(opened)]
    if which is Item.DOCUMENTS:
        return [_documents(opened, root, decides=decides)]
    return _screening(context, opened, root, decides=decides)


def _business(business: Business, *, whole: bool) -> list[tuple[str, object]]:
    at = business.address
    lines = (at.line1, at.line2, f"{at.city}, {at.state} {at.postcode}")
    return [
        ("Legal name", business.legal_name),
        ("Trading name", business.trading_name or "the same"),
        ("EIN", business.ein if whole else business.masked_ein),
        ("Kind of business", BUSINESS_WORDS[business.type]),
        ("Website", business.website),
        ("Address", ", ".join(filter(None, lines))),
        ("Sells", business.sells),
    ]


def _owners(opened: OpenedOnboarding, *, revealed: bool) -> PageContext:
    columns = [cell("Name"), cell("Controls"), cell("Owns", amount=True)]
    rows = [
        [
            cell(
                each.details.name if revealed else masked_name(each.details.name),
                more=f"born {each.details.born_text}" if revealed else "",
            ),
            cell("yes" if each.details.controlling else "no"),
            cell(f"{percent_text(each.details.share)} %", amount=True),
        ]
        for each in opened.facts.owners
    ]
    return table("", columns, rows, "")


def _bank(opened: OpenedOnboarding) -> PageContext:
    account = opened.facts.account
    if account is None or account.effective_at is None:
        return section(
            texts=[
                "An owner or an admin of the merchant adds the account in its dashboard. You can enter it with: cuota merchant bank NAME --routing N --account N"
            ]
        )
    pairs: list[tuple[str, object]] = [
        ("Account", f"ends in {account.last4}"),
        ("In force from", when(account.effective_at)),
    ]
    if (before := opened.facts.rejected_before) is not None:
        again = f"The same numbers were rejected on {when(before.decided_at)} by {before.decider}: {before.reason}"
        pairs.append(("Entered again", again))
    return section(
        pairs=pairs,
        texts=["Compare the last digits with a document, such as a voided check or a letter of the bank."],
    )


def _documents(opened: OpenedOnboarding, root: str, *, decides: bool) -> PageContext:
    columns = [cell("Document"), cell("Sent", wide=True), cell("Size", amount=True, wide=True)]
    rows = [
        [
            cell(
                each.name if decides else "hidden",
                f"{root}/documents/{each.document_id}" if decides else None,
                more=DOCUMENT_WORDS[each.kind],
            ),
            cell(when(each.sent_at), more=each.sender, wide=True),
            cell(size_words(each.size), amount=True, wide=True),
        ]
        for each in opened.facts.documents
    ]
    return table("", columns, rows, "")


def _screening(context: Context, opened: OpenedOnboarding, root: str, *, decides: bool) -> list[PageContext]:
    facts, screening = opened.facts, opened.facts.screening
    if facts.names is None:
        return []
    texts = []
    if context.rails.screening is None:
        texts.append(NO_SCREENING_RAIL)
    elif screening.problem:
        texts.append(
            f"The rail did not answer: {screening.problem}. The names are tried again {_at(screening.next_at)}."
        )
    elif screening.names != facts.names:
        texts.append("The names have not been screened yet. A job does that within seconds.")
    pairs: list[tuple[str, object]] = [
        ("Names", f"{len(opened.subjects)}: the business and its owners"),
        (
            "Last screened",
            f"{when(screening.screened_at)} by {screening.rail}" if screening.screened_at else "never",
        ),
        ("Next", _at(screening.next_at)),
    ]
    columns = [
        cell("On the list"),
        cell("Name", wide=True),
        cell("Found", wide=True),
        cell("Status"),
        cell("Alike", amount=True),
    ]
    rows = [_finding(each, root, decides=decides) for each in screening.findings]
    empty = "No name is similar to a name on the lists." if screening.screened_at else ""
    return [section(texts=texts, pairs=pairs), table("Possible matches", columns, rows, empty)]


def _at(at: object) -> str:
    return when(at) if at is not None else "not planned"  # type: ignore[arg-type]


def _finding(each: Finding, root: str, *, decides: bool) -> list[PageContext]:
    address = f"{root}/findings/{each.finding_id}" if decides else None
    return [
        cell(each.listed_name, address, more=f"{each.list_name}, {each.entry}"),
        cell(SUBJECT_WORDS[each.kind], wide=True),
        cell(day_of(each.found_at), wide=True),
        state(*FINDING_WORDS[each.state]),
        cell(f"{each.score} %", amount=True),
    ]
