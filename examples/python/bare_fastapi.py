"""A service as there are many: FastAPI and a database. Run it with `uvicorn bare_fastapi:app`.

`governed_fastapi.py` is the same service as a tool behind Countersign.
"""
import os
import sqlite3
import uuid

from fastapi import FastAPI, HTTPException

app = FastAPI()


def database():
    db = sqlite3.connect(os.environ.get("ORDERS_DB", "orders.db"))
    db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, sku TEXT NOT NULL, quantity INTEGER NOT NULL)")
    return db


@app.post("/orders")
def place_order(sku: str, quantity: int = 1) -> dict:
    """Places an order for an item."""
    if not sku.startswith("SKU-"):
        raise HTTPException(404, "there is no such item")
    order_id = "o_" + uuid.uuid4().hex
    with database() as db:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", (order_id, sku, quantity))
    return {"order_id": order_id, "sku": sku, "quantity": quantity}
