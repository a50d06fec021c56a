"""Keeps one customer at Stripe for each consumer. A table of this rail stores their ids."""

from __future__ import annotations

import contextlib
from uuid import UUID

import stripe

from cuota.rails.card.protocol import CardHolder
from cuota.rails.card.stripe_calls import answered
from cuota.rails.stores import RailDatabase

_FIND = "SELECT customer FROM card_processor.customers WHERE consumer_id = $1 AND account = $2"
# If two first cards arrive at once, one customer is stored. The other customer is empty and does no harm.
_ADD = """INSERT INTO card_processor.customers (consumer_id, account, customer) VALUES ($1, $2, $3)
    ON CONFLICT (consumer_id, account) DO UPDATE SET customer = CASE WHEN customers.customer = $4
        THEN excluded.customer ELSE customers.customer END RETURNING customer"""
_ERASED = "SELECT customer FROM card_processor.erased_customers WHERE consumer_id = $1 AND account = $2"
_DELETED = "DELETE FROM card_processor.erased_customers WHERE customer = $1 AND account = $2"
# The keys of another Stripe account are no longer here, so its customers cannot be deleted.
_OF_OTHERS = "DELETE FROM card_processor.erased_customers WHERE consumer_id = $1 AND account <> $2"


class StripeCustomers:
    """Finds or creates the customer of a consumer in one Stripe account."""

    def __init__(self, client: stripe.StripeClient, books: RailDatabase, account: str) -> None:
        self._stripe = client
        self._books = books
        self._account = account

    async def of(self, holder: CardHolder) -> str:
        """Return the id of the consumer's customer. A customer that was deleted at Stripe is replaced."""
        row = await self._books.fetchrow(_FIND, holder.consumer_id, self._account)
        known = str(row["customer"]) if row is not None else None
        if known is not None and await self._exists(known):
            return known
        made = await answered(
            self._stripe.v1.customers.create_async(
                {
                    "name": holder.name,
                    "email": holder.email,
                    "metadata": {"consumer_id": str(holder.consumer_id)},
                }
            )
        )
        kept = await self._books.fetchrow(_ADD, holder.consumer_id, self._account, made.id, known)
        assert kept is not None
        return str(kept["customer"])

    async def _exists(self, customer: str) -> bool:
        try:
            found = await answered(
                self._stripe.v1.customers.retrieve_async(customer), (stripe.InvalidRequestError,)
            )
        except stripe.InvalidRequestError:
            return False
        return not found.to_dict().get("deleted")

    async def forget(self, consumer_id: UUID) -> None:
        """Delete the customers of an erased consumer at Stripe.

        A customer that Stripe does not know has already been deleted.
        """
        for row in await self._books.fetch(_ERASED, consumer_id, self._account):
            with contextlib.suppress(stripe.InvalidRequestError):
                deleting = self._stripe.v1.customers.delete_async(row["customer"])
                await answered(deleting, (stripe.InvalidRequestError,))
            await self._books.execute(_DELETED, row["customer"], self._account)
        await self._books.execute(_OF_OTHERS, consumer_id, self._account)
