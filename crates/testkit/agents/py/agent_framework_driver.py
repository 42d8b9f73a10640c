"""Drives agent-framework with its stock classes: `python agent_framework_driver.py`, see driver.py."""

from contextlib import asynccontextmanager

import driver
from agent_framework.anthropic import AnthropicClient
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from anthropic import AsyncAnthropic

# docs: begin connect
from agent_framework import Agent, FunctionMiddleware, MCPStreamableHTTPTool


def connect(url, api_key=None, **options):
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else None
    return MCPStreamableHTTPTool("countersign", url, static_headers=headers, load_prompts=False, **options)


# docs: end


# docs: begin key
class KeyPerCall(FunctionMiddleware):
    """One key per call of the model. What the framework repeats by itself has the same key."""

    def __init__(self, conversation_id):
        self.conversation_id = conversation_id

    async def process(self, context, call_next):
        key = f"{self.conversation_id}.{context.metadata['call_id']}"
        context.kwargs["_meta"] = {"dev.countersign/idempotency_key": key}
        await call_next()


# docs: end


# docs: begin again
class OnPurpose(FunctionMiddleware):
    """Says that the same call is meant once more."""

    async def process(self, context, call_next):
        context.kwargs["_meta"] = {"dev.countersign/again": True}
        await call_next()


# docs: end


def provider(spec):
    if spec.dialect == "anthropic":
        client = AsyncAnthropic(base_url=f"{spec.model_url}/anthropic", api_key="none", max_retries=0)
        return AnthropicClient(model="scripted", anthropic_client=client)
    kind = OpenAIChatClient if spec.dialect == "responses" else OpenAIChatCompletionClient
    return kind(model="scripted", api_key="none", base_url=f"{spec.model_url}/openai/v1")


@asynccontextmanager
async def session(spec):
    client = provider(spec)
    middleware = []
    if spec.keyed:
        middleware.append(KeyPerCall(spec.conversation))
    if spec.again:
        middleware.append(OnPurpose())
    async with connect(spec.mcp_url, spec.api_key, request_timeout=spec.timeout) as tools:
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
