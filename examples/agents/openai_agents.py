"""An agent of the OpenAI Agents SDK with the tools of a Countersign server.

    pip install openai-agents==0.24.0
    countersign serve
    OPENAI_API_KEY=… python openai_agents.py "Find wireless earbuds and make me a draft order, to Berlin."

README.md lists the environment variables. Without an argument the program reads lines from the terminal.
"""

import asyncio

from agents import Agent, Runner
from agents.mcp import MCPServerStreamableHttp

from approvals import AGENT_KEY, INSTRUCTIONS, MODEL, SERVER, check, converse


async def main():
    check()
    headers = {"Authorization": f"Bearer {AGENT_KEY}"} if AGENT_KEY else {}
    connection = MCPServerStreamableHttp(
        params={"url": f"{SERVER}/mcp", "headers": headers},
        cache_tools_list=True,
        client_session_timeout_seconds=30,
        max_retry_attempts=2,  # a write that comes again is made once
    )
    async with connection as server:
        agent = Agent(name="shopper", instructions=INSTRUCTIONS, model=MODEL, mcp_servers=[server])
        messages = []

        async def say(text):
            messages.append({"role": "user", "content": text})
            result = await Runner.run(agent, messages, max_turns=40)
            messages[:] = result.to_input_list()
            return result.final_output

        await converse(say)


asyncio.run(main())
