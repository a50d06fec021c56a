"""A consumer who buys at two merchants' checkouts at the same moment, and what that consumer owes in the end."""

from __future__ import annotations

import contextlib
import threading

import httpx

from cuota.commands.checkout_walker import CannotWalk, walk
from support.faults.campaign import Campaign
from support.faults.served import ORDER
from support.faults.struck_shop import Shop
from support.phones import phone_number

# Two of them are more than a new consumer may owe.
LARGE = "1200.00"
BEGIN = "writes charges;"
SLOW_SECONDS = 2.0
OWED = """SELECT p.consumer_id, sum(o.amount + o.fee)::bigint AS owed, max(d.credit_limit) AS most
    FROM plans p JOIN orders o USING (merchant_id, order_id) JOIN decisions d USING (merchant_id, order_id)
    WHERE d.approved AND (o.status = 'Approved' OR o.charging IS NOT NULL) AND o.order_id = ANY ($1::text[]::uuid[])
    GROUP BY p.consumer_id"""


def _buys(address: str, phone: str) -> None:
    """Buy as a consumer with an ordinary name, because the sandbox approves its test name regardless of the debt."""
    with contextlib.suppress(httpx.HTTPError, CannotWalk):
        walk(address, "approved", phone=phone, surname="Rivera")


def two_at_once(shop: Shop, under: Campaign) -> list[str]:
    """Pay two orders of one consumer at the same moment. The save of one is slow, so that the other is decided meanwhile."""
    phone = phone_number()
    body = {**ORDER, "amount": LARGE, "merchant": {**ORDER["merchant"], "statusCallbackUrl": shop.hooks.url}}
    orders = [shop.ask("/order", body).json() for _ in range(2)]
    shop.service.arm("before", "sql", BEGIN, "hang", SLOW_SECONDS)
    threads = [threading.Thread(target=_buys, args=(order["redirectUrl"], phone)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shop.service.wait_for_strike()
    shop.until("SELECT NOT EXISTS (SELECT FROM orders WHERE charging IS NOT NULL)")
    return [
        f"consumer {row['consumer_id']} owes more than the limit: {row['owed']}, not {row['most']}"
        for row in shop.books.rows(OWED, [order["orderId"] for order in orders])
        if row["owed"] > row["most"]
    ]
