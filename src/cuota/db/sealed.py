"""All columns that the secret key encrypts. `cuota keys rewrap` reads and writes them page by page.

A test compares SEALED and HASHED with the catalog, so that every new column of bytes is listed in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from cuota.db.pool import Connection, Row
from cuota.db.session import Session

PAGE = 500
# A page has at most this many bytes of texts, but at least one text. A file of a dispute or a document of a merchant has up to
# 5 MiB, and reading or writing a page must end within the session's timeout.
PAGE_BYTES = 8 * 2**20
# The first bytes of a text: its nonce, which is different for each encryption, and 16 bytes more. Two texts with the same
# first bytes are the same text.
_BEGINNING = 28
# The names of a process's database sessions contain the id of the key with which it encrypts.
SESSION_NAME = "cuota key "


@dataclass(frozen=True, slots=True)
class Sealed:
    """One encrypted column: its table, the table's key with types, and the value to which its texts are bound.

    `which` is the condition for rows with an encrypted text. If the column is not `lasting`, some of these rows may have a plain
    text after all, and all of them are deleted within a day.
    """

    table: str
    key: tuple[tuple[str, str], ...]
    column: str
    bound_to: str
    which: str = "true"
    lasting: bool = True

    def bound(self, row: Row) -> str:
        """Return the value to which this row's text is bound."""
        return self.bound_to.format(**{name: row[name] for name, _ in self.key})

    def names(self) -> str:
        """Return the columns of the key."""
        return ", ".join(name for name, _ in self.key)

    def marks(self, first: int = 1) -> str:
        """Return the parameters for the values of a key, from the number `first` on."""
        return ", ".join(f"${number}::{kind}" for number, (_, kind) in enumerate(self.key, first))

    def key_of(self, row: Row) -> list[object]:
        """Return the values of this row's key."""
        return [row[name] for name, _ in self.key]


HASH_KEY = "public.hash_key"
_MERCHANT = (("merchant_id", "uuid"),)
_ENDPOINT = (("merchant_id", "uuid"), ("endpoint_id", "uuid"))
_BANK_ACCOUNT = (("merchant_id", "uuid"), ("account_id", "uuid"))
_PERSON = (("merchant_id", "uuid"), ("person_id", "uuid"))
_OWNER = (("merchant_id", "uuid"), ("owner_id", "uuid"))
_DOCUMENT = (("merchant_id", "uuid"), ("document_id", "uuid"))
_DISPUTE_FILE = (("merchant_id", "uuid"), ("evidence_id", "uuid"), ("number", "smallint"))
# Most stored responses contain no secret and are plain JSON objects.
_NO_JSON = r"NOT (substring(body FROM 1 FOR 2) = '\x7b22' AND substring(body FROM length(body)) = '\x7d')"
SEALED = (
    Sealed(HASH_KEY, (("single", "boolean"),), "sealed", "hash-key"),
    Sealed("public.signing_keys", (("key_id", "text"),), "private_key", "signing-key:{key_id}"),
    Sealed("public.signing_keys_p256", (("key_id", "text"),), "private_key", "signing-key:{key_id}"),
    Sealed("public.merchants", _MERCHANT, "signing_secret", "signing-secret:{merchant_id}"),
    Sealed("public.merchants", _MERCHANT, "old_signing_secret", "signing-secret:{merchant_id}"),
    Sealed("public.merchants", _MERCHANT, "webhook_secret", "webhook-secret:{merchant_id}"),
    Sealed("public.merchants", _MERCHANT, "old_webhook_secret", "webhook-secret:{merchant_id}"),
    Sealed("public.webhook_endpoints", _ENDPOINT, "secret", "endpoint-secret:{endpoint_id}"),
    Sealed("public.webhook_endpoints", _ENDPOINT, "old_secret", "endpoint-secret:{endpoint_id}"),
    Sealed("public.bank_accounts", _BANK_ACCOUNT, "routing", "bank-account:{account_id}"),
    Sealed("public.bank_accounts", _BANK_ACCOUNT, "account", "bank-account:{account_id}"),
    Sealed("bank_files.payments", (("payout_id", "uuid"),), "routing", "bank-payment:{payout_id}"),
    Sealed("bank_files.payments", (("payout_id", "uuid"),), "account", "bank-payment:{payout_id}"),
    Sealed(
        "bank_files.files", (("number", "bigint"),), "content", "bank-file:{number}", "content IS NOT NULL"
    ),
    Sealed(
        "public.dispute_evidence",
        (("merchant_id", "uuid"), ("dispute_id", "uuid"), ("evidence_id", "uuid")),
        "text",
        "dispute-evidence:{evidence_id}",
        "text IS NOT NULL",
    ),
    Sealed(
        "public.messages",
        (("merchant_id", "uuid"), ("order_id", "uuid"), ("message_id", "uuid")),
        "said",
        "message:{message_id}",
        "said IS NOT NULL",
    ),
    Sealed(
        "public.plan_changes",
        (("merchant_id", "uuid"), ("order_id", "uuid"), ("number", "smallint")),
        "reason",
        "plan-change:{order_id}:{number}",
        "reason IS NOT NULL",
    ),
    Sealed(
        "public.consumer_blocks",
        (("consumer_id", "uuid"), ("block_id", "uuid")),
        "reason",
        "consumer-block:{block_id}",
        "reason IS NOT NULL",
    ),
    Sealed("public.dispute_files", _DISPUTE_FILE, "name", "dispute-file-name:{evidence_id}:{number}"),
    Sealed("public.dispute_files", _DISPUTE_FILE, "content", "dispute-file:{evidence_id}:{number}"),
    Sealed(
        "public.merchant_onboarding",
        _MERCHANT,
        "business",
        "merchant-business:{merchant_id}",
        "business IS NOT NULL",
    ),
    Sealed("public.merchant_owners", _OWNER, "details", "merchant-owner:{owner_id}"),
    Sealed("public.merchant_documents", _DOCUMENT, "name", "merchant-document-name:{document_id}"),
    Sealed("public.merchant_documents", _DOCUMENT, "content", "merchant-document:{document_id}"),
    Sealed("public.desk_people", _PERSON, "factor", "desk-factor:{person_id}", "factor IS NOT NULL"),
    Sealed(
        "public.desk_sessions",
        (("merchant_id", "uuid"), ("session_id", "uuid")),
        "new_factor",
        "desk-new-factor:{session_id}",
        "new_factor IS NOT NULL",
    ),
    Sealed(
        "public.operator_people",
        (("person_id", "uuid"),),
        "factor",
        "operator-factor:{person_id}",
        "factor IS NOT NULL",
    ),
    Sealed(
        "public.operator_sessions",
        (("session_id", "uuid"),),
        "new_factor",
        "operator-new-factor:{session_id}",
        "new_factor IS NOT NULL",
    ),
    Sealed("issuing_simulator.cards", (("key", "uuid"),), "sealed", "virtual-card:{key}"),
    Sealed(
        "public.idempotency_keys",
        (("merchant_id", "uuid"), ("key", "text")),
        "body",
        "idempotency:{merchant_id}:{key}",
        _NO_JSON,
        lasting=False,
    ),
)
# Columns of bytes that are not encrypted: hashes, public keys and challenges, the start of a receiver's response, and logos.
HASHED = {
    "public.credentials.secret_hash", "public.credentials.old_secret_hash", "public.token_failures.client_hash",
    "public.checkout_sessions.session_hash", "public.checkout_sessions.code_hash", "public.checkout_sessions.device_hash",
    "public.account_sessions.session_hash", "public.account_sessions.code_hash", "public.codes_sent.phone_hash",
    "public.idempotency_keys.request_hash", "public.sdk_checkouts.body_hash", "public.virtual_cards.session_hash",
    "public.plans.browser", "public.plans.card_hash", "public.charges.card_hash", "public.consumer_asks.value_hash",
    "public.card_declines.card_hash", "public.card_declines.charge_hash",
    "public.remembered_browsers.token_hash", "public.text_choices.phone_hash", "public.decisions.inputs_hash", "public.signals.value_hash",
    "public.reviews.inputs_hash",
    "public.delivery_attempts.answer", "public.desk_sessions.session_hash", "public.operator_sessions.session_hash",
    "public.desk_passkeys.credential_id", "public.desk_passkeys.public_key", "public.desk_challenges.browser_hash",
    "public.desk_challenges.challenge", "public.merchant_logos.content", "public.operator_passkeys.credential_id", "public.operator_passkeys.public_key",
    "public.operator_provider_visits.browser_hash", "public.operator_provider_visits.state_hash",
    "public.operator_provider_visits.session_hash", "public.operator_challenges.browser_hash", "public.operator_challenges.challenge",
    "public.merchant_onboarding.names_hash", "public.screening_findings.subject_hash",
    "issuing_simulator.cards.number_hash", "issuing_simulator.cards.details_hash",
}  # fmt: skip

_OTHERS = """SELECT application_name AS name, count(*) AS sessions FROM pg_stat_activity
    WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (application_name = 'cuota' OR starts_with(application_name, $1)) AND application_name <> $1 || $2
    GROUP BY application_name ORDER BY application_name"""


async def count(session: Session, place: Sealed) -> int:
    """Return how many texts this column has."""
    sql = f"SELECT count(*) AS held FROM {place.table} WHERE {place.column} IS NOT NULL AND {place.which}"
    row = await session.fetchrow(sql)
    return 0 if row is None else int(row["held"])


async def page(session: Session, place: Sealed, after: Row | None) -> list[Row]:
    """Return the next rows in the order of their key: the columns of the key, and `text`."""
    while sizes := await _sizes(session, place, after):
        fits = _fitting([row["size"] for row in sizes])
        # Rows may be deleted between the two reads. If all of them were, the page begins behind them.
        if rows := await _texts(session, place, sizes[0], sizes[fits - 1], fits):
            return rows
        after = sizes[fits - 1]
    return []


def _fitting(sizes: Sequence[int]) -> int:
    """Return how many of the first texts a page has."""
    together = list(accumulate(sizes))
    return max(1, sum(size <= PAGE_BYTES for size in together))


async def _sizes(session: Session, place: Sealed, after: Row | None) -> list[Row]:
    """Return the keys of the next rows, each with the `size` of its text, which PostgreSQL knows without reading the text."""
    behind = "" if after is None else f"AND ({place.names()}) > ({place.marks()})"
    sql = f"""SELECT {place.names()}, octet_length({place.column}) AS size FROM {place.table}
        WHERE {place.column} IS NOT NULL AND {place.which} {behind} ORDER BY {place.names()} LIMIT {PAGE}"""
    return await session.fetch(sql, *(() if after is None else place.key_of(after)))


async def _texts(session: Session, place: Sealed, first: Row, last: Row, most: int) -> list[Row]:
    """Return the rows from one key to another, each with its `text`."""
    sql = f"""SELECT {place.names()}, {place.column} AS text FROM {place.table}
        WHERE {place.column} IS NOT NULL AND {place.which} AND ({place.names()}) >= ({place.marks()})
            AND ({place.names()}) <= ({place.marks(len(place.key) + 1)}) ORDER BY {place.names()} LIMIT {most}"""
    return await session.fetch(sql, *place.key_of(first), *place.key_of(last))


async def replace(session: Session, place: Sealed, rows: Sequence[tuple[Row, bytes]]) -> int:
    """Write the new texts, except in rows whose text has changed meanwhile. Return how many were written."""
    arrays = ", ".join(f"${number}::{kind}[]" for number, (_, kind) in enumerate(place.key, 3))
    same = " AND ".join(f"t.{name} = n.{name}" for name, _ in place.key)
    sql = f"""UPDATE {place.table} t SET {place.column} = n.new
        FROM unnest($1::bytea[], $2::bytea[], {arrays}) AS n (old, new, {place.names()})
        WHERE {same} AND substring(t.{place.column} FROM 1 FOR {_BEGINNING}) = n.old RETURNING 1"""
    keys = [[row[name] for row, _ in rows] for name, _ in place.key]
    old, new = [row["text"][:_BEGINNING] for row, _ in rows], [text for _, text in rows]
    return len(await session.fetch(sql, old, new, *keys))


async def other_sessions(session: Session, key_id: str) -> dict[str, int]:
    """Count, by name, the service's sessions that encrypt with another key or belong to an earlier release."""
    return {row["name"]: row["sessions"] for row in await session.fetch(_OTHERS, SESSION_NAME, key_id)}


async def forked(connection: Connection) -> list[Sealed]:
    """Return the same columns in the forks of the sandbox (`db/sandbox/forks.py`). Only the database's owner can use them."""
    names = [row["name"] for row in await connection.fetch("SELECT name FROM forks ORDER BY name")]
    return [
        Sealed(
            f'"fork_{name}"."{place.table}"',
            place.key,
            place.column,
            place.bound_to,
            place.which,
            place.lasting,
        )
        for name in names
        for place in SEALED
        if await connection.fetchval("SELECT to_regclass($1)", f'"fork_{name}"."{place.table}"')
    ]
