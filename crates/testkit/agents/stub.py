"""A model provider for tests: the scripted model of `story.py` behind the APIs of OpenAI and Anthropic.

    python stub.py --port 0 [--log FILE]

prints one line, `{"url": "http://127.0.0.1:PORT", "validates": ["openai", "anthropic"]}`, and answers until it is killed:

    POST /openai/v1/chat/completions   base_url of a client: URL/openai/v1
    POST /openai/v1/responses          the same
    POST /anthropic/v1/messages        base_url of a client: URL/anthropic

each with `stream: true` as server-sent events, and each also behind `/for-NAME`, which the log then names. Every request is
validated with the request types of the packages `openai` and `anthropic`, where they are installed, and with rules that the providers
enforce beside their types. What is wrong is answered with 400, as the provider would, and counted: `GET /log` says how many requests there were and
what was wrong with them.
"""

import argparse
import functools
import importlib.util
import itertools
import json
import re
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import story

BODY_MAX = 32 << 20


class Refused(Exception):
    """The provider refuses the request with 400 and this text."""


# --- validation with the providers' own types -----------------------------------------------------------------------


PACKAGES = {"chat": "openai", "responses": "openai", "anthropic": "anthropic"}


@functools.cache
def _adapter_of(route):
    """A function that validates with the request types of a package, or None if it is not installed.

    They refuse members that they do not know, as the APIs do.
    """
    if importlib.util.find_spec(PACKAGES[route]) is None:
        return None
    if route == "anthropic":
        from anthropic.types import message_create_params as messages

        return _adapter("anthropic", messages.MessageCreateParamsBase, "stream")
    if route == "responses":
        from openai.types.responses import response_create_params as responses

        return _adapter("openai", responses.ResponseCreateParamsBase, "stream")
    from openai.types.chat import completion_create_params as chat

    return _adapter("openai", chat.CompletionCreateParamsBase, "stream")


def _adapter(package, base, *more):
    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import is_typeddict

    for name, module in list(sys.modules.items()):
        if name.startswith(f"{package}.types"):
            for kind in vars(module).values():
                if is_typeddict(kind):
                    kind.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    adapter = TypeAdapter(base)

    def validate(body):
        from pydantic import ValidationError

        try:
            _exhaust(adapter.validate_python(_filled({name: body[name] for name in body if name not in more})))
        except ValidationError as wrong:
            raise Refused(_short(wrong)) from None

    return validate


def _filled(body):
    """The body as the types want it where the API takes more.

    A function of Responses may leave out `strict` and `parameters`, and a tool message of Chat Completions may have a `name`.
    """
    body = dict(body)
    if isinstance(body.get("tools"), list):
        body["tools"] = [
            {"strict": None, "parameters": None} | tool if _is_flat_function(tool) else tool for tool in body["tools"]
        ]
    if isinstance(body.get("messages"), list):
        body["messages"] = [
            {name: message[name] for name in message if name != "name"} if _is_tool_message(message) else message
            for message in body["messages"]
        ]
    return body


def _is_tool_message(message):
    return isinstance(message, dict) and message.get("role") == "tool"


def _is_flat_function(tool):
    return isinstance(tool, dict) and tool.get("type") == "function" and "function" not in tool


def _exhaust(value):
    """Walks a validated value: pydantic checks an `Iterable` only while it is read."""
    if isinstance(value, dict):
        for inner in value.values():
            _exhaust(inner)
    elif not isinstance(value, (str, bytes, int, float, type(None))) and hasattr(value, "__iter__"):
        for inner in value:
            _exhaust(inner)


def _short(wrong):
    """The errors of the alternative that was meant: of a union, the one with the fewest, as it has no wrong `type`."""
    alternatives = {}
    for error in wrong.errors(include_url=False, include_context=False):
        alternatives.setdefault(_alternative(error["loc"]), []).append(error)
    errors = min(alternatives.values(), key=lambda errors: (any(_tells_kind(error) for error in errors), len(errors)))
    texts = [f"{'.'.join(map(str, error['loc']))}: {error['msg']} ({str(error['input'])[:80]})" for error in errors[:4]]
    return "; ".join(texts)


def _alternative(place):
    """The part of a place up to the last name of a type."""
    names = [number for number, part in enumerate(place) if isinstance(part, str) and part[:1].isupper()]
    return place[: names[-1] + 1] if names else place[:1]


def _tells_kind(error):
    return error["loc"][-1] in ("type", "role") and error["type"] in ("literal_error", "missing")


def _need(condition, text):
    if not condition:
        raise Refused(text)


def _names(names, pattern, most):
    names = list(names)
    _need(len(names) <= most, f"tools: {len(names)} tools, at most {most}")
    _need(len(set(names)) == len(names), "tools: names must be unique")
    for name in names:
        _need(re.fullmatch(pattern, name), f"tools: the name {name!r} does not match {pattern}")


def _text(content):
    """The text that a model sees of a content: a string, or the text of its parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] if "text" in part else json.dumps(part) for part in content)


# --- the three dialects: a request becomes a conversation, a turn becomes a response --------------------------------


class Chat:
    """OpenAI Chat Completions."""

    @staticmethod
    def conversation(body, _):
        _need(body.get("messages"), "messages: must not be empty")
        tools = [tool for tool in body.get("tools") or [] if tool.get("type") == "function"]
        _names((tool["function"]["name"] for tool in tools), r"[a-zA-Z0-9_-]{1,64}", 128)
        told = story.Conversation(
            {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
        )
        open_calls = set()
        for number, message in enumerate(body["messages"]):
            role = message["role"]
            if role == "tool":
                id = message["tool_call_id"]
                _need(id in open_calls, f"messages.[{number}]: a 'tool' message must answer a preceding 'tool_calls'")
                open_calls.discard(id)
                _need(told.answer(id, _text(message.get("content"))), f"messages.[{number}]: no call {id}")
                continue
            _need(
                not open_calls,
                f"messages.[{number}]: 'tool_calls' must be followed by tool messages for each id, missing: {open_calls}",
            )
            if role == "user":
                told.items.append(story.User(_text(message["content"])))
            elif role == "assistant":
                for call in message.get("tool_calls") or []:
                    _arguments(call["function"]["arguments"], False)
                    told.items.append(story.Called(call["id"], call["function"]["name"]))
                    open_calls.add(call["id"])
                if not message.get("tool_calls"):
                    told.items.append(story.Said(_text(message.get("content"))))
        _need(not open_calls, f"messages: no tool message for {open_calls}")
        return told

    @staticmethod
    def response(body, turn, id):
        message = {"role": "assistant", "content": None, "refusal": None, "annotations": []}
        if isinstance(turn, story.Say):
            message["content"] = turn.text
        else:
            message["tool_calls"] = [
                {
                    "id": f"call_{id}{place}",
                    "type": "function",
                    "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
                }
                for place, call in enumerate(turn)
            ]
        return {
            "id": f"chatcmpl-{id}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": None,
                    "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                }
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }

    @staticmethod
    def events(response, body):
        head = {name: response[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        choice = response["choices"][0]
        message = choice["message"]

        def chunk(delta, reason=None):
            return None, head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

        yield chunk({"role": "assistant", "content": "" if message["content"] else None})
        for piece in _pieces(message["content"] or ""):
            yield chunk({"content": piece})
        for place, call in enumerate(message.get("tool_calls", [])):
            function = call["function"]
            yield chunk({"tool_calls": [call | {"index": place, "function": function | {"arguments": ""}}]})
            for piece in _pieces(function["arguments"]):
                yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
        yield chunk({}, choice["finish_reason"])
        if (body.get("stream_options") or {}).get("include_usage"):
            yield None, head | {"choices": [], "usage": response["usage"]}
        yield None, "[DONE]"

    @staticmethod
    def error(text):
        return {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}}


class Responses:
    """OpenAI Responses. What was answered is kept by its id, for clients that send `previous_response_id`."""

    @staticmethod
    def conversation(body, kept):
        tools = [tool for tool in body.get("tools") or [] if tool["type"] == "function"]
        _names((tool["name"] for tool in tools), r"[a-zA-Z0-9_-]{1,64}", 128)
        told = story.Conversation({tool["name"]: tool.get("parameters") or {} for tool in tools})
        for number, item in enumerate(Responses._input(body, kept)):
            kind = item.get("type", "message")
            if kind == "function_call":
                _arguments(item["arguments"], False)
                told.items.append(story.Called(item["call_id"], item["name"]))
            elif kind == "function_call_output":
                _need(
                    told.answer(item["call_id"], _text(item["output"])),
                    f"input[{number}]: No tool call found for function call output with call_id {item['call_id']}.",
                )
            elif kind == "message":
                text = _text(item["content"])
                if item["role"] == "user":
                    told.items.append(story.User(text))
                elif item["role"] == "assistant":
                    told.items.append(story.Said(text))
        for item in told.items:
            _need(
                not isinstance(item, story.Called) or item.result is not None,
                "input: No tool output found for a function call",
            )
        return told

    @staticmethod
    def _input(body, kept):
        items = []
        if body.get("previous_response_id"):
            _need(body["previous_response_id"] in kept, "previous_response_id: no such response")
            items += kept[body["previous_response_id"]]
        now = body.get("input") or []
        known = {item["id"]: item for item in itertools.chain(*kept.values()) if item.get("id")}
        for item in [{"role": "user", "content": now}] if isinstance(now, str) else now:
            if item.get("type") == "item_reference":
                _need(item["id"] in known, f"input: Item with id '{item['id']}' not found.")
                item = known[item["id"]]
            items.append(item)
        return items

    @staticmethod
    def response(body, turn, id):
        if isinstance(turn, story.Say):
            content = {"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}
            output = [
                {
                    "id": f"msg_{id}",
                    "type": "message",
                    "status": "completed",
                    "role": "assistant",
                    "content": [content],
                }
            ]
        else:
            output = [
                {
                    "id": f"fc_{id}{place}",
                    "type": "function_call",
                    "status": "completed",
                    "call_id": f"call_{id}{place}",
                    "name": call.tool,
                    "arguments": json.dumps(call.arguments),
                }
                for place, call in enumerate(turn)
            ]
        return {
            "id": f"resp_{id}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "metadata": body.get("metadata") or {},
            "model": body["model"],
            "output": output,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": body.get("previous_response_id"),
            "store": body.get("store", True),
            "temperature": body.get("temperature", 1.0),
            "text": body.get("text") or {"format": {"type": "text"}},
            "tool_choice": body.get("tool_choice") or "auto",
            "tools": [],
            "top_p": body.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 10,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 110,
            },
        }

    @staticmethod
    def events(response, _):
        numbers = itertools.count()

        def event(kind, **members):
            return kind, {"type": kind, "sequence_number": next(numbers)} | members

        begun = response | {"status": "in_progress", "output": [], "usage": None}
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        for place, item in enumerate(response["output"]):
            at = {"output_index": place, "item_id": item["id"]}
            if item["type"] == "message":
                part = item["content"][0]
                empty = part | {"text": ""}
                yield event(
                    "response.output_item.added",
                    output_index=place,
                    item=item | {"status": "in_progress", "content": []},
                )
                yield event("response.content_part.added", content_index=0, part=empty, **at)
                for piece in _pieces(part["text"]):
                    yield event("response.output_text.delta", content_index=0, delta=piece, logprobs=[], **at)
                yield event("response.output_text.done", content_index=0, text=part["text"], logprobs=[], **at)
                yield event("response.content_part.done", content_index=0, part=part, **at)
            else:
                yield event(
                    "response.output_item.added",
                    output_index=place,
                    item=item | {"status": "in_progress", "arguments": ""},
                )
                for piece in _pieces(item["arguments"]):
                    yield event("response.function_call_arguments.delta", delta=piece, **at)
                yield event(
                    "response.function_call_arguments.done", name=item["name"], arguments=item["arguments"], **at
                )
            yield event("response.output_item.done", output_index=place, item=item)
        yield event("response.completed", response=response)

    error = Chat.error


class Anthropic:
    """Anthropic Messages."""

    @staticmethod
    def conversation(body, _):
        _need(body.get("messages"), "messages: at least one message is required")
        tools = [tool for tool in body.get("tools") or [] if "input_schema" in tool]
        _names((tool["name"] for tool in tools), r"[a-zA-Z0-9_-]{1,128}", 1024)
        for tool in tools:
            _need(tool["input_schema"].get("type") == "object", f"tools.{tool['name']}.input_schema.type: must be object")
        told = story.Conversation({tool["name"]: tool["input_schema"] for tool in tools})
        _need(body["messages"][0]["role"] == "user", "messages: first message must use the \"user\" role")
        open_calls = set()
        for number, message in enumerate(body["messages"]):
            blocks = message["content"]
            blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else list(blocks)
            results = [block for block in blocks if block["type"] == "tool_result"]
            answered = {block["tool_use_id"] for block in results}
            _need(
                not open_calls - answered,
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{open_calls - answered}",
            )
            _need(
                not answered - open_calls,
                f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {answered - open_calls}",
            )
            _need(blocks[: len(results)] == results, f"messages.{number}: `tool_result` blocks must come first")
            for block in results:
                told.answer(block["tool_use_id"], _text(block.get("content")))
            texts = [block["text"] for block in blocks if block["type"] == "text"]
            for text in texts:
                _need(text.strip(), f"messages.{number}: text content blocks must contain non-whitespace text")
            uses = [block for block in blocks if block["type"] == "tool_use"]
            for block in uses:
                _arguments(block["input"], True)
                told.items.append(story.Called(block["id"], block["name"]))
            open_calls = {block["id"] for block in uses}
            if message["role"] == "user" and texts:
                told.items.append(story.User("\n".join(texts)))
            elif message["role"] == "assistant" and not uses:
                told.items.append(story.Said("\n".join(texts)))
        _need(not open_calls, f"messages: no `tool_result` for {open_calls}")
        return told

    @staticmethod
    def response(body, turn, id):
        said = isinstance(turn, story.Say)
        content = (
            [{"type": "text", "text": turn.text, "citations": None}]
            if said
            else [
                {"type": "tool_use", "id": f"toolu_{id}{place}", "name": call.tool, "input": call.arguments}
                for place, call in enumerate(turn)
            ]
        )
        return {
            "id": f"msg_{id}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "end_turn" if said else "tool_use",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 100,
                "output_tokens": 10,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        }

    @staticmethod
    def events(response, _):
        def event(kind, **members):
            return kind, {"type": kind} | members

        yield event("message_start", message=response | {"content": [], "stop_reason": None})
        for place, block in enumerate(response["content"]):
            if block["type"] == "text":
                yield event("content_block_start", index=place, content_block=block | {"text": ""})
                for piece in _pieces(block["text"]):
                    yield event("content_block_delta", index=place, delta={"type": "text_delta", "text": piece})
            else:
                yield event("content_block_start", index=place, content_block=block | {"input": {}})
                for piece in _pieces(json.dumps(block["input"])):
                    delta = {"type": "input_json_delta", "partial_json": piece}
                    yield event("content_block_delta", index=place, delta=delta)
            yield event("content_block_stop", index=place)
        ended = {"stop_reason": response["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=ended, usage={"output_tokens": 10})
        yield event("message_stop")

    @staticmethod
    def error(text):
        return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}


def _pieces(text):
    """A text in pieces, as a stream brings it."""
    return [text[at : at + 40] for at in range(0, len(text), 40)]


def _arguments(arguments, parsed):
    """The arguments that a framework sends back have to be those of a call: an object, or its text."""
    try:
        value = arguments if parsed else json.loads(arguments or "{}")
    except ValueError:
        raise Refused("the arguments of a call are no JSON") from None
    _need(isinstance(value, dict), "the arguments of a call are no object")


ROUTES = {
    "/openai/v1/chat/completions": ("chat", Chat),
    "/openai/v1/responses": ("responses", Responses),
    "/anthropic/v1/messages": ("anthropic", Anthropic),
}


# --- the server -----------------------------------------------------------------------------------------------------


class Stub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port=0, log=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.lock = threading.Lock()
        # Importing a package and preparing its types takes seconds.
        self.building = {package: threading.Lock() for package in PACKAGES.values()}
        self.requests = 0
        self.refused = []
        self.kept = {}  # for previous_response_id: what was in a conversation, by the id of its answer
        self.log = log

    def answer(self, path, body, caller=None):
        """Status and response for the body of a request, and the events that a stream would have."""
        route, dialect = ROUTES[path]
        id = uuid.uuid4().hex[:24]  # as with the providers, an answer that is made again has other ids
        with self.lock:
            self.requests += 1
        try:
            _need(isinstance(body, dict), "the body is no object")
            _need(isinstance(body.get("model"), str), "model: a name is required")
            with self.building[PACKAGES[route]]:
                validate = _adapter_of(route)
            if validate is not None:
                validate(body)
            told = dialect.conversation(body, self.kept)
            turn = story.play(told)
            response = dialect.response(body, turn, id)
        except (Refused, KeyError, TypeError, AttributeError) as wrong:
            text = str(wrong) if isinstance(wrong, Refused) else f"malformed: {wrong!r}"
            with self.lock:
                self.refused.append({"path": path, "for": caller, "why": text[:2000]})
            self.note(path, body, {"status": 400, "why": text})
            return 400, dialect.error(text), None
        if route == "responses":
            with self.lock:
                self.kept[response["id"]] = Responses._input(body, self.kept) + response["output"]
        self.note(path, body, response)
        return 200, response, dialect.events(response, body) if body.get("stream") else None

    def handle_error(self, *_):
        """A client that hangs up is no error."""

    def note(self, path, body, answer):
        if self.log:
            with self.lock, open(self.log, "a") as file:
                file.write(json.dumps({"path": path, "request": body, "answer": answer}) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def do_POST(self):
        caller, path = re.fullmatch(r"(?:/for-([\w-]+))?(/.*)", self.path.split("?")[0]).groups()
        length = int(self.headers.get("content-length") or 0)
        if length > BODY_MAX:
            self.close_connection = True
            return self.reply(413, {"error": {"message": "too long"}})
        sent = self.rfile.read(length)
        if path not in ROUTES:
            return self.reply(404, {"error": {"message": f"no such path: {path}", "type": "invalid_request_error"}})
        try:
            body = json.loads(sent)
        except ValueError:
            return self.reply(400, ROUTES[path][1].error("the body is no JSON"))
        status, response, events = self.server.answer(path, body, caller)
        if events is None:
            return self.reply(status, response)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for kind, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            line = (f"event: {kind}\n" if kind else "") + f"data: {text}\n\n"
            encoded = line.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(encoded), encoded))
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        if self.path == "/log":
            return self.reply(200, {"requests": self.server.requests, "refused": self.server.refused})
        self.reply(404, {"error": {"message": "no such path"}})

    def reply(self, status, body):
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes one that is free")
    parser.add_argument("--log", help="a file that gets every request and answer, one JSON line each")
    given = parser.parse_args()
    server = Stub(given.port, given.log)
    validates = sorted(package for package in set(PACKAGES.values()) if importlib.util.find_spec(package))
    print(json.dumps({"url": server.url, "validates": validates}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
