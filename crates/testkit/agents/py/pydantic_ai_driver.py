"""Drives pydantic-ai with its stock classes: `python pydantic_ai_driver.py`, see driver.py."""

from contextlib import asynccontextmanager

import driver
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

# docs: begin connect
import hashlib
import json

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


def connect(url, api_key=None, **options):
    return MCPToolset(url, auth=api_key, **options)


# docs: end


# docs: begin key
async def key_per_call(context, call_tool, name, arguments):
    """The same call for the same request of the user has the same key, whoever repeats it."""
    call = json.dumps([context.deps, name, arguments], sort_keys=True)  # deps: the id of the user's request
    key = hashlib.sha256(call.encode()).hexdigest()
    return await call_tool(name, arguments, metadata={"dev.countersign/idempotency_key": key})


# docs: end


# docs: begin again
async def on_purpose(context, call_tool, name, arguments):
    """Says that the same call is meant once more."""
    return await call_tool(name, arguments, metadata={"dev.countersign/again": True})


# docs: end


# docs: begin form
def forms(ask_user):
    """Shows the user the questions of the server, where the API key is the user's own."""

    async def handler(message, response_type, params, context):
        return {"confirm": await ask_user(message)}

    return handler


# docs: end


def provider(spec):
    if spec.dialect == "anthropic":
        client = AsyncAnthropic(base_url=f"{spec.model_url}/anthropic", api_key="none", max_retries=0)
        return AnthropicModel("scripted", provider=AnthropicProvider(anthropic_client=client))
    client = AsyncOpenAI(base_url=f"{spec.model_url}/openai/v1", api_key="none", max_retries=0)
    kind = OpenAIResponsesModel if spec.dialect == "responses" else OpenAIChatModel
    return kind("scripted", provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def session(spec):
    model = provider(spec)
    options = {"read_timeout": spec.timeout, "max_retries": 3}
    if spec.keyed:
        options["process_tool_call"] = key_per_call
    if spec.again:
        options["process_tool_call"] = on_purpose
    if spec.form:

        async def ask_user(message):
            return spec.form == "accept"

        options["elicitation_handler"] = forms(ask_user)
    toolset = connect(spec.mcp_url, spec.api_key, **options)
    request_id = spec.conversation
    # docs: begin run
    agent = Agent(model, toolsets=[toolset])
    async with agent:
        messages = []

        async def say(text):
            result = await agent.run(text, deps=request_id, message_history=messages)
            messages[:] = result.all_messages()
            return result.output

        # docs: end
        async def say_streamed(text):
            async with agent.run_stream(text, deps=request_id, message_history=messages) as result:
                output = await result.get_output()
            messages[:] = result.all_messages()
            return output

        yield say_streamed if spec.stream else say


if __name__ == "__main__":
    driver.run(session)
