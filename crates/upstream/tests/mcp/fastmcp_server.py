"""A server of FastMCP, as its documentation shows one."""

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel

server = FastMCP("fast")


class Sum(BaseModel):
    sum: int


@server.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool(output_schema=None)
def greet(name: str) -> str:
    """Greets somebody."""
    return f"hello {name}"


@server.tool
def fail(why: str) -> str:
    """Fails."""
    raise ToolError(why)


if __name__ == "__main__":
    server.run(show_banner=False)
