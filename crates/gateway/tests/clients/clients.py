"""Real MCP clients against a running gateway: `python clients.py URL`.

Every check is made with the packages `mcp` (both eras) and `fastmcp`. Ends with "ok" on its last line.
"""

import asyncio
import json
import sys

import fastmcp
import mcp


def texts(result):
    return [block.text for block in result.content if block.type == "text"]


async def with_sdk(url, mode):
    """The official SDK; `mode` chooses the era."""
    async with mcp.Client(url, mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "notes_add" in names and "test_count" in names, names

        found = await client.call_tool("memory_search", {"query": "milk", "limit": "2"})
        assert not found.is_error, found
        assert json.loads(texts(found)[0])[0]["text"] == "buy milk", found
        assert "TEXT_TO_INTEGER" in texts(found)[1], found

        wrong = await client.call_tool("memory_search", {"qurey": "milk"})
        assert wrong.is_error and texts(wrong)[0].startswith("INVALID_ARGUMENT: "), wrong
        assert len(wrong.content) == 1 and len(texts(wrong)[0]) <= 500, wrong
        assert wrong.meta["dev.countersign/error"]["code"] == "INVALID_ARGUMENT", wrong

        meta = {"dev.countersign/idempotency_key": f"key-{mode}"}
        first = await client.call_tool("notes_add", {"text": mode}, meta=meta)
        again = await client.call_tool("notes_add", {"text": mode}, meta=meta)
        assert first.structured_content == again.structured_content, (first, again)
        assert again.meta["dev.countersign/idempotent_replay"] is True, again

        evidence = first.structured_content["evidence"]["snapshot_id"]
        uri = f"evidence://{evidence}"
        read = await client.read_resource(str(uri))
        record = json.loads(read.contents[0].text)["record"]
        assert record["tool"]["name"] == "notes.add", record

        steps = []

        async def on_progress(done, total, message):
            steps.append((done, total, message))

        counted = await client.call_tool("test_count", {"to": 3}, progress_callback=on_progress)
        assert texts(counted)[0] == "3", counted
        assert [step[0] for step in steps] == [1.0, 2.0, 3.0], steps
        return client.protocol_version


async def with_fastmcp(url):
    async with fastmcp.Client(url) as client:
        names = [tool.name for tool in await client.list_tools()]
        assert "notes_add" in names, names
        added = await client.call_tool("notes_add", {"text": "fast"})
        assert added.data is not None or added.structured_content["text"] == "fast", added
        wrong = await client.call_tool("notes_add", {"txet": "x"}, raise_on_error=False)
        assert wrong.is_error, wrong
        assert wrong.content[0].text.startswith("INVALID_ARGUMENT: "), wrong


async def main():
    url = sys.argv[1]
    eras = [await with_sdk(url, mode) for mode in ("auto", "legacy")]
    assert eras[0] == "2026-07-28" and eras[1] < "2026", eras
    await with_fastmcp(url)
    print("ok")


asyncio.run(main())
