"""Drives agent-framework with its stock classes: `python agent_framework_driver.py`, see driver.py."""

from contextlib import asynccontextmanager

import driver
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

# docs: begin connect
import hashlib
import json

from agent_framework import Agent, FunctionMiddleware, MCPStreamableHTTPTool
from agent_framework.exceptions import ToolExecutionException


def connect(url, api_key=None, **options):
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
    return MCPStreamableHTTPTool("countersign", url, static_headers=headers, load_prompts=False, **options)


# docs: end


# docs: begin key
class KeyPerCall(FunctionMiddleware):
    """The same call for the same request of the user has the same key, whoever repeats it."""

    def __init__(self, request_id):
        self.request_id = request_id

    async def process(self, context, call_next):
        call = json.dumps([self.request_id, context.function.name, context.arguments], sort_keys=True)
        key = hashlib.sha256(call.encode()).hexdigest()
        context.kwargs["_meta"] = {"dev.countersign/idempotency_key": key}
        await call_next()


# docs: end


# docs: begin reconnect
class Reconnect(FunctionMiddleware):
    """After a broken connection the framework refuses every further call: connects anew and sends the call again."""

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


# docs: end


# docs: begin again
class OnPurpose(FunctionMiddleware):
    """Says that the same call is meant once more."""

    async def process(self, context, call_next):
        context.kwargs["_meta"] = {"dev.countersign/again": True}
        await call_next()


# docs: end


# docs: begin errors
# Without this the model reads "Error: Function failed." in place of what the server says.
TELL_THE_MODEL = {"include_detailed_errors": True}
# docs: end


def provider(spec):
    options = {"model": "scripted", "function_invocation_configuration": TELL_THE_MODEL}
    kind = OpenAIChatClient if spec.dialect == "responses" else OpenAIChatCompletionClient
    return kind(api_key="none", base_url=f"{spec.model_url}/openai/v1", **options)


@asynccontextmanager
async def session(spec):
    client = provider(spec)
    middleware = []
    if spec.keyed:
        middleware.append(KeyPerCall(spec.conversation))
    if spec.again:
        middleware.append(OnPurpose())
    async with connect(spec.mcp_url, spec.api_key, request_timeout=spec.timeout) as tools:
        if spec.retry:
            middleware.append(Reconnect(tools))
        # docs: begin run
        agent = Agent(client, name="shopper", tools=[tools], middleware=middleware)
        thread = agent.create_session()

        async def say(text):
            return (await agent.run(text, session=thread)).text

        # docs: end
        async def say_streamed(text):
            stream = agent.run(text, session=thread, stream=True)
            async for _ in stream:
                pass
            return (await stream.get_final_response()).text

        yield say_streamed if spec.stream else say


if __name__ == "__main__":
    driver.run(session)
