"""`python tests/faults --seconds 300 --seed 7`: kills and stops under load. `--retries 10000`: a bad network instead.

The exit code is 0 if there was no problem. Otherwise the program prints each problem with its order's whole history,
and the command that repeats the run.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.faults.books import Books
from support.faults.campaign import Campaign, battered, campaign, retried

_HISTORY = """
SELECT created_at AS at, 'movement ' || kind || ' ' || reference || ' ' || amount AS what FROM movements WHERE order_id = $1::text::uuid
UNION ALL SELECT created_at, 'event ' || sequence || ' ' || type || ' ' || coalesce(reference, '') || ' ' || amount
    FROM events WHERE order_id = $1::text::uuid
UNION ALL SELECT created_at, 'transfer ' || number || ' ' || posting || ' ' || debit || ' to ' || credit || ' ' || amount
    FROM transfers WHERE order_id = $1::text::uuid
ORDER BY at
"""
_SHOWN = 100


def main() -> int:
    """Run one campaign and print its result."""
    options = _options()
    # On SIGTERM, exit through SystemExit, so that the campaign still stops the processes that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    again = f"python tests/faults --seed {options.seed} " + (
        f"--retries {options.retries}" if options.retries else f"--seconds {options.seconds:g}"
    )
    print(f"seed {options.seed}; the same again: {again}", flush=True)
    # Few orders with many movements are slow to deliver: each event's body lists all movements of its order, and an
    # order's events are delivered one after the other. With ninety seconds of load on only three orders of each
    # merchant, the deliveries did not finish within a minute.
    orders = options.retries // 400 if options.retries else int(options.seconds // 15)
    with campaign(options.seed, orders=max(3, orders)) as under:
        if options.retries:
            proxy = asyncio.run(retried(under, options.retries))
            print("mishaps:", dict(sorted(proxy.happened.items())))
        else:
            fallen = asyncio.run(battered(under, options.seconds, hurry=False))
            print("blows:", dict(fallen))
        problems = under.close_the_books()
        print(
            f"operations: {dict(under.tally())}; looked at {under.samples} times; all told after {under.told_after:.1f} s"
        )
        for problem in problems[:_SHOWN]:
            print(problem)
        _histories(under, problems)
    print(f"{len(problems)} problems" + (f"; the same again: {again}" if problems else ""))
    return 1 if problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--seconds", type=float, default=60.0, help="kills and stops for so long")
    parser.add_argument(
        "--retries", type=int, default=0, help="so many operations through a bad network instead"
    )
    return parser.parse_args()


def _histories(under: Campaign, problems: list[str]) -> None:
    """Print the whole history of the first order that a problem names."""
    orders = [order for merchant in under.merchants for order in merchant.orders]
    wrong = [order for order in orders if any(order in problem for problem in problems)]
    for order in wrong[:1]:
        print(f"history of order {order}:")
        _history(under.books, order)


def _history(books: Books, order: str) -> None:
    for at, what in books.rows(_HISTORY, order):
        print(f"  {at.isoformat(timespec='milliseconds')} {what}")


if __name__ == "__main__":
    sys.exit(main())
