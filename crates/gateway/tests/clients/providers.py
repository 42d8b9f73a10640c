"""Messages made and read with the providers' own packages: `python providers.py URL`.

What a model would answer is built with the types of `openai`, `anthropic` and `google-genai`, sent to the gateway as
they serialise it, and what comes back is validated by the types that the next request of each would have. Ends with
"ok" on its last line.
"""

import json
import sys
import urllib.request

from anthropic.types import Message, ToolResultBlockParam, ToolUseBlock, Usage
from google.genai import types as gemini
from openai.types.chat import ChatCompletionMessage, ChatCompletionToolMessageParam
from openai.types.responses import ResponseFunctionToolCall
from openai.types.responses.response_input_param import FunctionCallOutput
from pydantic import TypeAdapter

ARGUMENTS = {"query": "milk", "limit": "2"}


def ask(url, provider, message):
    """What the gateway makes of a message."""
    body = json.dumps(message).encode()
    request = urllib.request.Request(
        f"{url}/v1/providers/{provider}/calls", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def openai(url):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "memory_search", "arguments": json.dumps(ARGUMENTS)},
    }
    message = ChatCompletionMessage(role="assistant", content=None, tool_calls=[call])
    answer = ask(url, "openai", message.model_dump(mode="json"))
    replies = TypeAdapter(list[ChatCompletionToolMessageParam]).validate_python(answer)
    assert [reply["tool_call_id"] for reply in replies] == ["call_1"], answer
    assert "milk" in replies[0]["content"], answer


def openai_responses(url):
    call = ResponseFunctionToolCall(
        type="function_call",
        call_id="call_1",
        name="memory_search",
        arguments=json.dumps(ARGUMENTS),
    )
    answer = ask(url, "openai-responses", {"output": [call.model_dump(mode="json")]})
    outputs = TypeAdapter(list[FunctionCallOutput]).validate_python(answer)
    assert [output["call_id"] for output in outputs] == ["call_1"], answer
    assert "milk" in outputs[0]["output"], answer


def anthropic(url):
    call = ToolUseBlock(type="tool_use", id="toolu_1", name="memory_search", input=ARGUMENTS)
    message = Message(
        id="msg_1",
        type="message",
        role="assistant",
        model="claude",
        content=[call],
        stop_reason="tool_use",
        usage=Usage(input_tokens=1, output_tokens=1),
    )
    answer = ask(url, "anthropic", message.model_dump(mode="json"))
    results = TypeAdapter(list[ToolResultBlockParam]).validate_python(answer["content"])
    assert answer["role"] == "user" and results[0]["tool_use_id"] == "toolu_1", answer
    assert "milk" in json.dumps(answer), answer


def google(url):
    call = gemini.FunctionCall(id="c_1", name="memory_search", args=ARGUMENTS)
    content = gemini.Content(role="model", parts=[gemini.Part(function_call=call)])
    answer = ask(url, "gemini", content.model_dump(mode="json", by_alias=True, exclude_none=True))
    reply = gemini.Content.model_validate(answer)
    response = reply.parts[0].function_response
    assert (response.id, response.name) == ("c_1", "memory_search"), answer
    assert "milk" in json.dumps(response.response), answer


if __name__ == "__main__":
    for check in (openai, openai_responses, anthropic, google):
        check(sys.argv[1])
        print(check.__name__)
    print("ok")
