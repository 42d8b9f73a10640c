"""A server of FastMCP, as its documentation shows one."""

from fastmcp import Context, FastMCP
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


@server.tool(output_schema=None)
async def steps(count: int, ctx: Context) -> str:
    """Reports each step, and answers."""
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
    return "done"


if __name__ == "__main__":
    server.run(show_banner=False)
