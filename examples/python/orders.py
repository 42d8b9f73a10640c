"""An order service as a tool behind Countersign, with nothing but Python and SQLite.

    python orders.py                  # serves on http://127.0.0.1:9000
    python orders.py --countersign    # prints the entries for countersign.toml

It shows the whole contract: the idempotency key is stored with the effect in one transaction, a repeat gets the first
answer, `find_order` says what became of a call whose answer was lost, and a dry run changes nothing.
"""
import json
import os
import sqlite3
import uuid
from typing import Annotated, Optional

from countersign_tool import DID_NOT_HAPPEN, Context, ToolError, happened, serve, tool

STOCK = {"SKU-1": 10, "SKU-2": 3}


def database():
    db = sqlite3.connect(os.environ.get("ORDERS_DB", "orders.db"), timeout=5, isolation_level=None)
    db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, sku TEXT, quantity INTEGER, buyer TEXT)")
    # The answer is stored under the key, in the transaction of the order: both are there, or neither is.
    db.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL)")
    return db


def answer_of(db, key):
    row = db.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
    return json.loads(row[0]) if row else None


def find_order(ctx: Context):
    """What became of a call: it happened if its key is there."""
    answer = answer_of(database(), ctx.key)
    return happened(answer) if answer else DID_NOT_HAPPEN


@tool("orders.place", effect="write", confirm=True, dry_run=True, reconcile=find_order, grace_seconds=5)
def place_order(
    ctx: Context,
    sku: Annotated[str, "Stock keeping unit, such as SKU-1."],
    quantity: Annotated[int, "How many.", {"minimum": 1, "maximum": 100}] = 1,
    note: Optional[str] = None,
) -> dict:
    """Places an order for an item of the warehouse.

    Args:
        note: A note for the packer.
    """
    if sku not in STOCK:
        raise ToolError("NOT_FOUND", f"there is no item {sku}", hint=f"use one of {', '.join(STOCK)}")
    if quantity > STOCK[sku]:
        raise ToolError("OUT_OF_STOCK", f"{STOCK[sku]} are left", details={"left": STOCK[sku]})
    if ctx.dry_run:
        return {"order_id": None, "sku": sku, "quantity": quantity}
    db = database()
    db.execute("BEGIN IMMEDIATE")  # two attempts at the same time: one waits for the other
    with db:
        first = answer_of(db, ctx.key)
        if first:
            return first
        order = {"order_id": "o_" + uuid.uuid4().hex[:12], "sku": sku, "quantity": quantity}
        db.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", (order["order_id"], sku, quantity, ctx.user))
        db.execute("INSERT INTO answers VALUES (?, ?)", (ctx.key, json.dumps(order)))
    return order


@tool("orders.count", effect="read")
def count_orders() -> dict:
    """Tells how many orders there are."""
    return {"orders": database().execute("SELECT count(*) FROM orders").fetchone()[0]}


if __name__ == "__main__":
    serve("orders")
