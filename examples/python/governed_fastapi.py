"""The service of `bare_fastapi.py` as a tool behind Countersign. Run it with `uvicorn governed_fastapi:app`.

`PORT=8000 python governed_fastapi.py --countersign` prints its configuration.
"""
import os
import sqlite3
import uuid

from countersign_tool import DID_NOT_HAPPEN, asgi, current, happened, serve, tool
from fastapi import FastAPI, HTTPException

app = FastAPI()


def database():
    db = sqlite3.connect(os.environ.get("ORDERS_DB", "orders.db"))
    db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, sku TEXT NOT NULL, quantity INTEGER NOT NULL)")
    return db


def find_order(ctx):
    row = database().execute("SELECT id, sku, quantity FROM orders WHERE id = ?", ("o_" + ctx.key,)).fetchone()
    return happened(dict(zip(("order_id", "sku", "quantity"), row))) if row else DID_NOT_HAPPEN


@tool("orders.place", effect="write", reconcile=find_order)
@app.post("/orders")
def place_order(sku: str, quantity: int = 1) -> dict:
    """Places an order for an item."""
    if not sku.startswith("SKU-"):
        raise HTTPException(404, "there is no such item")
    order_id = "o_" + (current().key if current() else uuid.uuid4().hex)
    with database() as db:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", (order_id, sku, quantity))
    return {"order_id": order_id, "sku": sku, "quantity": quantity}


app.mount("/tools", asgi("orders"))

if __name__ == "__main__":
    serve("orders")
