"""Drives langchain and langchain-mcp-adapters with their stock classes: `python langchain_driver.py`, see driver.py."""

from contextlib import asynccontextmanager
from datetime import timedelta

import driver
from langchain_openai import ChatOpenAI

# docs: begin connect
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult


def connect(url, api_key=None, interceptors=(), callbacks=None, **options):
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    connection = {"transport": "streamable_http", "url": url, "headers": headers, **options}
    return MultiServerMCPClient(
        {"countersign": connection}, tool_interceptors=list(interceptors), callbacks=callbacks
    )


# docs: end


# docs: begin key
def key_per_call(conversation_id):
    """One key per call of the model. Retries of that call by ToolRetryMiddleware send the same key."""

    async def interceptor(request, handler):
        key = f"{conversation_id}.{request.runtime.tool_call_id}"
        return await handler(request.override(headers={"Idempotency-Key": key}))

    return interceptor


# docs: end


# docs: begin form
def forms(ask_user):
    """Shows the user the questions of the server, where the API key is the user's own."""

    async def handler(mcp_context, params, context):
        return ElicitResult(action="accept", content={"confirm": await ask_user(params.message)})

    return Callbacks(on_elicitation=handler)


# docs: end


def provider(spec):
    if spec.dialect == "anthropic":  # the import takes three seconds
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(
            model="scripted",
            base_url=f"{spec.model_url}/anthropic",
            api_key="none",
            max_retries=0,
            streaming=spec.stream,
        )
    return ChatOpenAI(
        model="scripted",
        base_url=f"{spec.model_url}/openai/v1",
        api_key="none",
        max_retries=0,
        use_responses_api=spec.dialect == "responses",
        streaming=spec.stream,
    )


@asynccontextmanager
async def session(spec):
    model = provider(spec)
    interceptors = []
    if spec.keyed:
        interceptors.append(key_per_call(spec.conversation))
    # docs: begin retry
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.05)
    # docs: end
    middleware = [retry] if spec.retry else []
    limits = {"timeout": spec.timeout, "session_kwargs": {"read_timeout_seconds": timedelta(seconds=spec.timeout)}}
    callbacks = None
    if spec.form:

        async def ask_user(message):
            return spec.form == "accept"

        callbacks = forms(ask_user)
    client = connect(spec.mcp_url, spec.api_key, interceptors, callbacks, **limits)
    # docs: begin run
    agent = create_agent(model, await client.get_tools(), middleware=middleware)
    messages = []

    async def say(text):
        state = {"messages": [*messages, {"role": "user", "content": text}]}
        messages[:] = (await agent.ainvoke(state, {"recursion_limit": 100}))["messages"]
        return messages[-1].text

    # docs: end
    yield say


if __name__ == "__main__":
    driver.run(session)
