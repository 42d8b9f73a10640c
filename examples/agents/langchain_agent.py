"""An agent of LangChain with the tools of a Countersign server.

    pip install langchain==1.4.7 langchain-mcp-adapters==0.3.2 langchain-openai==1.7.3
    countersign serve
    OPENAI_API_KEY=… python langchain_agent.py "Find wireless earbuds and make me a draft order, to Berlin."

README.md lists the environment variables. Without an argument the program reads lines from the terminal.
"""

import asyncio
from datetime import timedelta

from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

from approvals import AGENT_KEY, INSTRUCTIONS, MODEL, SERVER, check, converse


async def main():
    check()
    connection = {
        "transport": "streamable_http",
        "url": f"{SERVER}/mcp",
        "headers": {"Authorization": f"Bearer {AGENT_KEY}"} if AGENT_KEY else {},
        "session_kwargs": {"read_timeout_seconds": timedelta(seconds=30)},
    }
    tools = await MultiServerMCPClient({"countersign": connection}).get_tools()
    retry = ToolRetryMiddleware(max_retries=2)  # a write that comes again is made once
    agent = create_agent(ChatOpenAI(model=MODEL), tools, system_prompt=INSTRUCTIONS, middleware=[retry])
    messages = []

    async def say(text):
        state = {"messages": [*messages, {"role": "user", "content": text}]}
        messages[:] = (await agent.ainvoke(state, {"recursion_limit": 100}))["messages"]
        return messages[-1].text

    await converse(say)


asyncio.run(main())
