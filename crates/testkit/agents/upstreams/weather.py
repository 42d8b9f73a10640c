"""A server of FastMCP over HTTP: `python weather.py PORT HEARD`. Each call that it hears becomes a line of the file HEARD."""

import json
import sys

from fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("weather")


class Forecast(BaseModel):
    city: str
    degrees: int


@server.tool(annotations={"readOnlyHint": True})
def forecast(city: str, ctx: Context) -> Forecast:
    """Says how warm it will be in a city."""
    meta = ctx.request_context.meta or {}
    heard = {
        "tool": "weather.forecast",
        "request_id": meta.get("dev.countersign/request_id"),
        "traceparent": meta.get("traceparent"),
    }
    with open(sys.argv[2], "a") as file:
        file.write(json.dumps(heard) + "\n")
    return Forecast(city=city, degrees=21)


if __name__ == "__main__":
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
