"""A bare client of the package `mcp`, without a framework: `python mcp_client_driver.py`, see driver.py.

`open` also takes `era` ("auto", or "legacy" for the protocol before 2026-07-28) and `answers`: what the user does with each question
of the server, the last one for all that follow. An answer is `{"action": …, "content": …}`; with `page` (`server`, `key`, `decision`) the
user first answers on the page of the server's operator. `say` takes a call as JSON, `{"tool": …, "arguments": …}`, and gives
`{"text": …, "asked": […]}` with the questions that the client was asked meanwhile.
"""

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import driver
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

sys.path.append(str(Path(__file__).resolve().parents[4] / "examples" / "agents"))

import approvals  # noqa: E402

QUESTIONS_MAX = 12
"""A server that asks more often than this for one call never ends."""


@asynccontextmanager
async def session(spec):
    answers, asked = list(spec.answers), []

    async def elicit(context, params):
        question = params.model_dump(by_alias=True, exclude_none=True)
        asked.append({name: question.get(name) for name in ("mode", "url", "elicitationId", "message")})
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if len(asked) > QUESTIONS_MAX:
            raise RuntimeError(f"the server asks for the {len(asked)}th time")
        if page := answer.get("page"):
            id = asked[-1]["elicitationId"]
            approvals.answer(page["server"], page["key"], id, page["decision"])
        return ElicitResult(action=answer["action"], content=answer.get("content"))

    headers = {"Authorization": f"Bearer {spec.api_key}"}
    http = httpx2.AsyncClient(headers=headers, timeout=spec.timeout)
    transport = streamable_http_client(spec.mcp_url, http_client=http)
    async with http, Client(transport, mode=spec.era, elicitation_callback=elicit) as client:

        async def say(text):
            asked.clear()
            call = json.loads(text)
            result = await client.call_tool(call["tool"], call["arguments"])
            told = "\n".join(block.text for block in result.content if block.type == "text")
            return json.dumps({"text": told, "asked": asked, "era": client.protocol_version})

        yield say


if __name__ == "__main__":
    driver.run(session)
