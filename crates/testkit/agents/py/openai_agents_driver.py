"""Drives openai-agents with its stock classes: `python openai_agents_driver.py`, see driver.py."""

from contextlib import asynccontextmanager

import driver
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel, set_tracing_disabled
from openai import AsyncOpenAI

# docs: begin connect
from agents import Agent, Runner
from agents.mcp import MCPServerStreamableHttp


def connect(url, api_key=None, **options):
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return MCPServerStreamableHttp(params={"url": url, "headers": headers}, cache_tools_list=True, **options)


# docs: end


# docs: begin key
def key_per_call(call):
    """One key per call of the model. The SDK's own retries of that call send the same key."""
    # `run_context.context` is what you gave to Runner.run as `context`: here the id of the conversation.
    key = f"{call.run_context.context}.{call.run_context.tool_call_id}"
    return {"dev.countersign/idempotency_key": key}


# docs: end


# docs: begin retry
RETRY = {"max_retry_attempts": 2, "retry_backoff_seconds_base": 0.05}
# docs: end


@asynccontextmanager
async def session(spec):
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{spec.model_url}/openai/v1", api_key="none", max_retries=0)
    kind = OpenAIResponsesModel if spec.dialect == "responses" else OpenAIChatCompletionsModel
    model = kind(model="scripted", openai_client=client)
    options = {"client_session_timeout_seconds": spec.timeout}
    if spec.retry:
        options |= RETRY
    if spec.keyed:
        options["tool_meta_resolver"] = key_per_call
    async with connect(spec.mcp_url, spec.api_key, **options) as server:
        conversation_id = spec.conversation
        # docs: begin run
        agent = Agent(name="shopper", model=model, mcp_servers=[server])
        messages = []

        async def say(text):
            messages.append({"role": "user", "content": text})
            result = await Runner.run(agent, messages, context=conversation_id, max_turns=40)
            messages[:] = result.to_input_list()
            return result.final_output

        # docs: end
        async def say_streamed(text):
            messages.append({"role": "user", "content": text})
            result = Runner.run_streamed(agent, messages, context=conversation_id, max_turns=40)
            async for _ in result.stream_events():
                pass
            messages[:] = result.to_input_list()
            return result.final_output

        yield say_streamed if spec.stream else say
    await client.close()


if __name__ == "__main__":
    driver.run(session)
