"""An agent of Pydantic AI with the tools of a Countersign server.

    pip install 'pydantic-ai-slim[mcp,openai]==2.62.0'
    countersign serve
    OPENAI_API_KEY=… python pydantic_ai_agent.py "Find wireless earbuds and make me a draft order, to Berlin."

README.md lists the environment variables. Without an argument the program reads lines from the terminal.
"""

import asyncio

import httpx2
from pydantic_ai import Agent, capture_run_messages
from pydantic_ai.mcp import MCPToolset

from approvals import AGENT_KEY, INSTRUCTIONS, MODEL, SERVER, check, converse


async def main():
    check()
    # "failed": the model reads a refusal as a result. By default the second refusal of a tool ends the run.
    toolset = MCPToolset(f"{SERVER}/mcp", auth=AGENT_KEY, tool_error_behavior="failed", read_timeout=30)
    agent = Agent(f"openai:{MODEL}", instructions=INSTRUCTIONS, toolsets=[toolset])
    messages = []

    async def say(text, attempts=3):
        history = messages
        while True:
            with capture_run_messages() as seen:
                try:
                    result = await agent.run(text, message_history=history)
                    break
                except httpx2.TransportError:  # a lost connection ends the run
                    attempts -= 1
                    if attempts == 0:
                        raise
            history, text = list(seen), None  # the next run begins where this one ended
        messages[:] = result.all_messages()
        return result.output

    await converse(say)


asyncio.run(main())
