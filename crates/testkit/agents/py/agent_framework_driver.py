"""Drives agent-framework with its stock classes: `python agent_framework_driver.py`, see driver.py."""

from contextlib import asynccontextmanager

import driver
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

# docs: begin connect
import json

from agent_framework import Agent, FunctionMiddleware, MCPStreamableHTTPTool
from agent_framework.exceptions import ToolExecutionException


def connect(url, api_key=None, **options):
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
    return MCPStreamableHTTPTool("countersign", url, static_headers=headers, load_prompts=False, **options)


# docs: end


# docs: begin key
class KeyPerCall(FunctionMiddleware):
    """One key per call of the model. A call that comes again after it got no answer has its first key again."""

    def __init__(self, conversation_id):
        self.conversation_id = conversation_id
        self.lost = {}

    async def process(self, context, call_next):
        same = json.dumps([context.function.name, context.arguments], sort_keys=True)
        key = self.lost.pop(same, None) or f"{self.conversation_id}.{context.metadata['call_id']}"
        context.kwargs["_meta"] = {"dev.countersign/idempotency_key": key}
        try:
            await call_next()
        except Exception:
            self.lost[same] = key
            raise


# docs: end


# docs: begin reconnect
class Reconnect(FunctionMiddleware):
    """After a broken connection the framework refuses every further call: connects anew and sends the call again."""

    def __init__(self, tools):
        self.tools = tools  # the MCPStreamableHTTPTool

    async def process(self, context, call_next):
        try:
            await call_next()
        except ToolExecutionException as failed:
            if "Connection closed" not in str(failed):
                raise
            await self.tools.connect(reset=True)
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
