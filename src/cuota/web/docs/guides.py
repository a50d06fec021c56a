"""The guides of the documentation: Markdown files in `docs/`. Each process renders each guide once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from cuota.web.docs.contract import PLACEHOLDER
from cuota.web.docs.markdown import DocsPage, render


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry in the list of guides. `name` is the file's name without `.md`; `about` is a one-line summary."""

    name: str
    title: str
    about: str

    @property
    def path(self) -> str:
        """The path of the guide's page."""
        return f"/docs/{self.name}"


# The guides in reading order. A guide whose file does not exist is left out.
_ALL = (
    Listed("api", "The merchant API", "An integration in five steps, safe retries, and our design choices."),
    Listed("plugins", "Shop plugins", "Connect a shop system: profile, audience, capture model, limits."),
    Listed(
        "sdk", "The browser SDK", "The checkout on top of your own page, and the signature of your server."
    ),
    Listed("virtual-card", "Virtual cards", "A card for the order, for shops that can only charge cards."),
    Listed("gateway", "Gateway and shop systems", "A signed form or link, and the API for shop systems."),
    Listed("webhooks", "Webhooks", "Sample receivers, retries, the order of events, and replay."),
    Listed("client", "The Python client", "Calls, retries, signatures and events in Python."),
    Listed(
        "desk", "The dashboard", "Your staff finds, captures and refunds orders; roles and the audit log."
    ),
    Listed("payouts", "Payouts", "The orders in each deposit, fees, and how to check a payout."),
    Listed("disputes", "Disputes", "Objections by a customer or a card network, and your answer to them."),
    Listed("plan", "The payment plan", "How installments are calculated, charged and changed."),
    Listed("time", "Time in the sandbox", "Move the sandbox's clock, copy the sandbox, go back."),
    Listed("risk", "Approvals", "How an order is approved, and the facts that you can send us."),
)


@lru_cache(maxsize=1)
def listed() -> tuple[Listed, ...]:
    """Return the guides whose files exist."""
    return tuple(guide for guide in _ALL if files("cuota_docs").joinpath(f"{guide.name}.md").is_file())


@lru_cache(maxsize=64)
def guide(name: str, base_url: str) -> DocsPage | None:
    """Return a guide with the address of this service; None if there is no guide with this name."""
    if name not in {one.name for one in listed()}:
        return None
    text = files("cuota_docs").joinpath(f"{name}.md").read_text("utf-8")
    base = base_url.rstrip("/")
    return render(text.replace("{base_url}", base).replace(PLACEHOLDER, base), _resolve)


def _resolve(address: str, text: str) -> tuple[str, str] | None:
    """Return the address and the text for a link in a guide; None if the link's file is not served."""
    if address.startswith(("#", "https://", "http://", "/")):
        return address, text
    file, mark, anchor = address.partition("#")
    for one in listed():
        if file == f"{one.name}.md":
            return f"{one.path}{mark}{anchor}", one.title if text == file else text
    return None
