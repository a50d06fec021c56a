"""The Python client for merchants: the calls of the API with safe retries, and both kinds of signatures.

The client needs httpx, and no other part of Cuota. `docs/client.md` shows how to use it.
"""

from cuota.client.answers import (
    Balances,
    Configuration,
    CreatedOrder,
    FieldError,
    Installment,
    Movement,
    Order,
    Original,
    Preview,
    Standing,
)
from cuota.client.asynchronous import AsyncClient
from cuota.client.disputed import Dispute, EventDispute, EventReturn, Statement, StatementFile
from cuota.client.errors import (
    BadWebhook,
    CuotaError,
    DuplicateReference,
    NotFound,
    RateLimited,
    RequestRefused,
    Unauthorized,
    Unavailable,
)
from cuota.client.ledger import to_beancount, to_hledger
from cuota.client.money import cents
from cuota.client.settled import Balance, NextPayout, Payout, PayoutLine, PayoutTotal, Terms
from cuota.client.settlement import SettlementProblem, SettlementVerdict, verify_payout
from cuota.client.signing import sign, verify_webhook
from cuota.client.sync import Client
from cuota.client.told import Endpoint, EndpointTest, Event, EventBankAccount, EventPayout

__all__ = [
    "AsyncClient",
    "BadWebhook",
    "Balance",
    "Balances",
    "Client",
    "Configuration",
    "CreatedOrder",
    "CuotaError",
    "Dispute",
    "DuplicateReference",
    "Endpoint",
    "EndpointTest",
    "Event",
    "EventBankAccount",
    "EventDispute",
    "EventPayout",
    "EventReturn",
    "FieldError",
    "Installment",
    "Movement",
    "NextPayout",
    "NotFound",
    "Order",
    "Original",
    "Payout",
    "PayoutLine",
    "PayoutTotal",
    "Preview",
    "RateLimited",
    "RequestRefused",
    "SettlementProblem",
    "SettlementVerdict",
    "Standing",
    "Statement",
    "StatementFile",
    "Terms",
    "Unauthorized",
    "Unavailable",
    "cents",
    "sign",
    "to_beancount",
    "to_hledger",
    "verify_payout",
    "verify_webhook",
]
