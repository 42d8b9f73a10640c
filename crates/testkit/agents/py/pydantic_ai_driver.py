"""Drives pydantic-ai with its stock classes: `python pydantic_ai_driver.py`, see driver.py."""

from contextlib import asynccontextmanager

import driver
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

# docs: begin connect
import json

import httpx2
from pydantic_ai import Agent, capture_run_messages
from pydantic_ai.mcp import MCPToolset


def connect(url, api_key=None, **options):
    # "failed": a refusal is a result that the model reads. By default it counts as a retry, and the second one ends the run.
    return MCPToolset(url, auth=api_key, tool_error_behavior="failed", **options)


# docs: end


# docs: begin key
def key_per_call(conversation_id):
    """One key per call of the model. A call that comes again after it got no answer has its first key again."""
    lost = {}

    async def process(context, call_tool, name, arguments):
        same = json.dumps([name, arguments], sort_keys=True)
        key = lost.pop(same, None) or f"{conversation_id}.{context.tool_call_id}"
        try:
            return await call_tool(name, arguments, metadata={"dev.countersign/idempotency_key": key})
        except Exception:
            lost[same] = key
            raise

    return process


# docs: end


# docs: begin form
def forms(ask_user):
    """Shows the user the questions of the server, where the API key is the user's own."""

    async def handler(message, response_type, params, context):
        return {"confirm": await ask_user(message)}

    return handler


# docs: end


def provider(spec):
    if spec.dialect == "anthropic":  # the import takes two seconds
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = AsyncAnthropic(base_url=f"{spec.model_url}/anthropic", api_key="none", max_retries=0)
        return AnthropicModel("scripted", provider=AnthropicProvider(anthropic_client=client))
    client = AsyncOpenAI(base_url=f"{spec.model_url}/openai/v1", api_key="none", max_retries=0)
    kind = OpenAIResponsesModel if spec.dialect == "responses" else OpenAIChatModel
    return kind("scripted", provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def session(spec):
    model = provider(spec)
    options = {"read_timeout": spec.timeout}
    if spec.keyed:
        options["process_tool_call"] = key_per_call(spec.conversation)
    if spec.form:

        async def ask_user(message):
            return spec.form == "accept"

        options["elicitation_handler"] = forms(ask_user)
    toolset = connect(spec.mcp_url, spec.api_key, **options)
    # docs: begin run
    agent = Agent(model, toolsets=[toolset])
    messages = []

    async def say(text):
        result = await agent.run(text, message_history=messages)
        messages[:] = result.all_messages()
        return result.output

    # docs: end
    # docs: begin retry
    async def say_patiently(text, attempts=5):
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

    # docs: end
    async def say_streamed(text):
        async with agent.run_stream(text, message_history=messages) as result:
            output = await result.get_output()
        messages[:] = result.all_messages()
        return output

    yield say_streamed if spec.stream else say_patiently if spec.retry else say


if __name__ == "__main__":
    driver.run(session)
