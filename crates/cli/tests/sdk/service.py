"""Tools for tests, which fail, wait and die as they are asked to: alone (`python service.py`) or in FastAPI (`uvicorn service:app`)."""
import json
import os
import threading
from typing import Literal

from countersign_tool import DID_NOT_HAPPEN, Context, ToolError, asgi, happened, serve, tool

JOURNAL = os.environ["JOURNAL"]


class SoldOut(Exception):
    pass


def hang(where):
    if "CALM" not in os.environ:
        print(where, flush=True)
        threading.Event().wait()


def find(ctx):
    with open(JOURNAL, "a+") as file:
        file.seek(0)
        orders = [json.loads(line) for line in file]
    found = [order["order"] for order in orders if order["key"] == ctx.key]
    return happened(found[0]) if found else DID_NOT_HAPPEN


@tool("t.order", dry_run=True, reconcile=find, grace_seconds=0)
def order(ctx: Context, sku: str, quantity: int = 1) -> dict:
    """Places an order.

    Args:
        sku: Stock keeping unit.
    """
    made = {"sku": sku, "quantity": quantity}
    if ctx.dry_run:
        return made
    first = find(ctx)
    if "data" in first:
        return first["data"]
    if sku == "before":
        hang("before")
    with open(JOURNAL, "a") as file:
        file.write(json.dumps({"key": ctx.key, "order": made}) + "\n")
    if sku == "after":
        hang("after")
    return made


@tool("t.fail", errors={SoldOut: "OUT_OF_STOCK"})
def fail(how: Literal["code", "declared", "safe", "bug"]):
    """Fails."""
    if how == "code":
        raise ToolError("PRICE_CHANGED", "it costs more now", hint="ask again", details={"price": "12.50"})
    if how == "declared":
        raise SoldOut("none is left")
    if how == "safe":
        raise ToolError("UPSTREAM_ERROR", "the bank is closed", retry_safe=True)
    raise KeyError("the password is hunter2")


@tool("t.who", effect="read")
async def who(ctx: Context) -> dict:
    """Tells who calls."""
    return {"user": ctx.user, "realm": ctx.realm, "actor": ctx.actor, "request_id": ctx.request_id,
            "trace": bool(ctx.traceparent), "in_time": 0 < ctx.remaining() <= 60, "key": ctx.key}


@tool("t.big", effect="read")
def big(size: int) -> dict:
    """Answers with so many bytes."""
    return {"text": "x" * size}


@tool("t.late", deadline_ms=2000)
def late(ctx: Context):
    """Waits for longer than anybody waits for it."""
    threading.Event().wait(ctx.remaining() + 0.05)
    print("late", ctx.remaining() < 0, flush=True)
    # It does not answer before the caller has gone, whose clock may be the later one.
    threading.Event().wait(10)


if __name__ == "__main__":
    serve("svc")
else:
    from fastapi import FastAPI

    app = FastAPI()
    app.mount("/tools", asgi("svc"))
