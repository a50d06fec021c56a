# ruff: noqa: N815 - the fields have the names of the JSON
"""The usual design of such a service: FastAPI, SQLAlchemy's ORM, one transaction for each request with SELECT FOR UPDATE.

It does less than the service (it compares one token as text, and has no plan, no feed and few rules). It follows the
guides of its frameworks. Run as `python usual.py PORT SOCKET_FOLDER DB_PORT USER DATABASE TOKEN` in an environment
with bench/peers/requirements.lock.
"""

import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel, Field
from sqlalchemy import JSON, BigInteger, DateTime, ForeignKey, String, UniqueConstraint, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

PORT, FOLDER, DB_PORT, USER, DATABASE, TOKEN = sys.argv[1:7]
engine = create_async_engine(
    f"postgresql+asyncpg://{USER}@/{DATABASE}?host={FOLDER}&port={DB_PORT}", pool_size=16, max_overflow=0
)
sessions = async_sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    """The base class of every table."""


class OrderRow(Base):
    """An order with its totals."""

    __tablename__ = "orders"
    order_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    merchant_id: Mapped[uuid.UUID] = mapped_column(index=True)
    status: Mapped[str] = mapped_column(String(20))
    amount: Mapped[int] = mapped_column(BigInteger)
    captured: Mapped[int] = mapped_column(BigInteger, default=0)
    document: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    captures: Mapped[list["Capture"]] = relationship(lazy="selectin")


class Capture(Base):
    """A capture; its reference is unique within its order."""

    __tablename__ = "captures"
    capture_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    order_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("orders.order_id"), index=True)
    reference: Mapped[str] = mapped_column(String(100))
    amount: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    __table_args__ = (UniqueConstraint("order_id", "reference"),)


class TransferRow(Base):
    """A row of the ledger."""

    __tablename__ = "transfers"
    transfer_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    order_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("orders.order_id"), index=True)
    debit: Mapped[str] = mapped_column(String(40))
    credit: Mapped[str] = mapped_column(String(40))
    amount: Mapped[int] = mapped_column(BigInteger)


class EventRow(Base):
    """An event of an order."""

    __tablename__ = "events"
    event_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    order_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("orders.order_id"), index=True)
    type: Mapped[str] = mapped_column(String(40))
    amount: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class AddressBody(BaseModel):
    """A part of the request, with the same fields as in the service's API."""

    addressLine1: str = Field(min_length=3, max_length=50)
    addressLine2: str | None = Field(default=None, max_length=50)
    city: str = Field(min_length=3, max_length=50)
    state: str = Field(min_length=2, max_length=2)
    postcode: str = Field(min_length=5, max_length=5)


class ConsumerBody(BaseModel):
    """A part of the request, with the same fields as in the service's API."""

    phoneNumber: str | None = Field(default=None, pattern=r"^[2-9][0-9]{9}$")
    givenNames: str | None = Field(default=None, min_length=2, max_length=50)
    surname: str | None = Field(default=None, min_length=2, max_length=50)
    email: str | None = Field(default=None, max_length=250)


class Item(BaseModel):
    """A part of the request, with the same fields as in the service's API."""

    name: str | None = None
    sku: str | None = None
    quantity: Decimal | None = None
    price: Decimal | None = None
    description: str | None = None


class MerchantUrls(BaseModel):
    """A part of the request, with the same fields as in the service's API."""

    redirectConfirmUrl: str
    redirectCancelUrl: str


class NewOrderBody(BaseModel):
    """The body of `POST /order`, with the same fields as in the service's API."""

    amount: Decimal = Field(gt=0, decimal_places=2)
    consumer: ConsumerBody | None = None
    billing: AddressBody | None = None
    shipping: AddressBody | None = None
    description: str | None = None
    items: list[Item] = []
    merchant: MerchantUrls
    merchantReference: str = Field(max_length=100)
    taxAmount: Decimal | None = None
    shippingAmount: Decimal | None = None


class NewCapture(BaseModel):
    """The body of a capture, with the same fields as in the service's API."""

    amount: Decimal = Field(gt=0, decimal_places=2)
    merchantReference: str = Field(min_length=1, max_length=100)


class CaptureShown(BaseModel):
    """The answer to a capture."""

    merchantReference: str
    amount: Decimal
    dateTime: datetime


class OrderShown(BaseModel):
    """The answer with the whole order."""

    orderId: uuid.UUID
    orderStatus: str
    originalAmount: Decimal
    capturedAmount: Decimal
    captures: list[CaptureShown]
    document: dict[str, Any]


@asynccontextmanager
async def tables(app: FastAPI) -> AsyncIterator[None]:
    del app
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield
    await engine.dispose()


async def transaction() -> AsyncIterator[AsyncSession]:
    async with sessions() as session, session.begin():
        yield session


async def merchant(authorization: Annotated[str, Header()]) -> uuid.UUID:
    if authorization != f"Bearer {TOKEN}":
        raise HTTPException(401)
    return uuid.UUID(int=7)


UsualSession = Annotated[AsyncSession, Depends(transaction, scope="function")]
Caller = Annotated[uuid.UUID, Depends(merchant)]
app = FastAPI(lifespan=tables)


@app.post("/order")
async def create(body: NewOrderBody, session: UsualSession, caller: Caller) -> dict[str, str]:
    """Create an order. It is approved at once, because this system has no checkout."""
    now = datetime.now(UTC)
    order = OrderRow(
        order_id=uuid.uuid4(),
        merchant_id=caller,
        status="Approved",
        amount=int(body.amount * 100),
        captured=0,
        document=body.model_dump(mode="json"),
        created_at=now,
    )
    session.add(order)
    await session.flush()
    session.add(
        EventRow(
            event_id=uuid.uuid4(),
            order_id=order.order_id,
            type="order.created",
            amount=order.amount,
            created_at=now,
        )
    )
    return {"orderId": str(order.order_id), "token": str(uuid.uuid4())}


@app.get("/order/{order_id}")
async def read(order_id: uuid.UUID, session: UsualSession, caller: Caller) -> OrderShown:
    """Return the order."""
    order = await session.get(OrderRow, order_id)
    if order is None or order.merchant_id != caller:
        raise HTTPException(404)
    captures = [
        CaptureShown(merchantReference=c.reference, amount=Decimal(c.amount) / 100, dateTime=c.created_at)
        for c in order.captures
    ]
    return OrderShown(
        orderId=order.order_id,
        orderStatus=order.status,
        originalAmount=Decimal(order.amount) / 100,
        capturedAmount=Decimal(order.captured) / 100,
        captures=captures,
        document=order.document,
    )


@app.post("/order/{order_id}/capture")
async def capture(
    order_id: uuid.UUID, body: NewCapture, session: UsualSession, caller: Caller
) -> CaptureShown:
    """Capture under the order's row lock."""
    order = await session.get(OrderRow, order_id, with_for_update=True)
    if order is None or order.merchant_id != caller:
        raise HTTPException(404)
    same = select(Capture).where(Capture.order_id == order_id, Capture.reference == body.merchantReference)
    if await session.scalar(same) is not None:
        raise HTTPException(409)
    cents, now = int(body.amount * 100), datetime.now(UTC)
    if order.captured + cents > order.amount:
        raise HTTPException(422)
    order.captured += cents
    session.add_all(
        [
            Capture(
                capture_id=uuid.uuid4(),
                order_id=order_id,
                reference=body.merchantReference,
                amount=cents,
                created_at=now,
            ),
            TransferRow(
                transfer_id=uuid.uuid4(),
                order_id=order_id,
                debit="authorized_uncaptured",
                credit="merchant_payable",
                amount=cents,
            ),
            EventRow(
                event_id=uuid.uuid4(),
                order_id=order_id,
                type="order.captured",
                amount=cents,
                created_at=now,
            ),
        ]
    )
    return CaptureShown(merchantReference=body.merchantReference, amount=body.amount, dateTime=now)


if __name__ == "__main__":
    uvicorn.run(app, port=int(PORT), loop="uvloop", http="httptools", access_log=False, log_level="warning")
