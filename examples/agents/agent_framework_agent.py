"""An agent of the Microsoft Agent Framework with the tools of a Countersign server.

    pip install agent-framework-core==1.23.0 agent-framework-openai==1.17.0 mcp==2.3.0 tenacity==9.1.4
    countersign serve
    OPENAI_API_KEY=… python agent_framework_agent.py "Find wireless earbuds and make me a draft order, to Berlin."

README.md lists the environment variables. Without an argument the program reads lines from the terminal.
"""

import asyncio

from agent_framework import Agent, FunctionMiddleware, MCPStreamableHTTPTool
from agent_framework.exceptions import ToolExecutionException
from agent_framework.openai import OpenAIChatClient

from approvals import AGENT_KEY, INSTRUCTIONS, MODEL, SERVER, check, converse


class Reconnect(FunctionMiddleware):
    """After a broken connection: connects anew and sends the call again. The server makes a write once."""

    def __init__(self, tools):
        self.tools = tools

    async def process(self, context, call_next):
        try:
            await call_next()
        except ToolExecutionException as failed:
            if "Connection closed" not in str(failed):
                raise
            await self.tools.connect(reset=True)
            await call_next()


async def main():
    check()
    headers = {"Authorization": f"Bearer {AGENT_KEY}"} if AGENT_KEY else None
    # Without detailed errors the model reads "Error: Function failed." in place of what the server says.
    client = OpenAIChatClient(model=MODEL, function_invocation_configuration={"include_detailed_errors": True})
    connection = MCPStreamableHTTPTool(
        "countersign", f"{SERVER}/mcp", static_headers=headers, load_prompts=False, request_timeout=30
    )
    async with connection as tools:
        agent = Agent(client, INSTRUCTIONS, name="shopper", tools=[tools], middleware=[Reconnect(tools)])
        thread = agent.create_session()

        async def say(text):
            return (await agent.run(text, session=thread)).text

        await converse(say)


asyncio.run(main())
