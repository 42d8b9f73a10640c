"""An MCP server over standard input and output, with nothing but the standard library: what it does wrong, it does on purpose.

The folder of the first argument is its world:
  effects   one line for each effect that a tool has had
  said      one line for each call of `say`, where the server watches its definitions
  read      the variable TOKEN, one line for each resource that was read with it
  watched   one line for each subscription to a resource, and for its end
  touched   there when the resources that are watched have changed
  cancelled one line for each call that the client has given up
  tools     further definitions, one JSON object a line; read at each list
  visited   there when the user has visited the address of `visit`
"""

import json
import os
import sys
import threading
import time

WORLD = sys.argv[1]
LOCK = threading.Lock()
ANSWERS = {}


def write(message):
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def note(name, line):
    with open(os.path.join(WORLD, name), "a") as file:
        file.write(line + "\n")


def lines(name):
    path = os.path.join(WORLD, name)
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return file.read().splitlines()


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = {"type": "string"}
TOOLS = [
    {
        "name": "echo",
        "description": "Says what it is told.",
        "inputSchema": schema(text=TEXT),
        "outputSchema": schema(text=TEXT, meta={"type": "object"}),
        "annotations": {"readOnlyHint": True},
    },
    {"name": "say", "description": "Answers with a text.", "inputSchema": schema(text=TEXT)},
    {"name": "who", "description": "Says who it is.", "inputSchema": schema()},
    {"name": "fail", "description": "Fails.", "inputSchema": schema(text=TEXT)},
    {"name": "order", "description": "Has an effect, and then does as it is told.", "inputSchema": schema(then=TEXT)},
    {"name": "slow", "description": "Reports twice, and waits for ever.", "inputSchema": schema()},
    {"name": "steps", "description": "Reports twice, and answers.", "inputSchema": schema()},
]


# With --offers: a tool that asks the user, resources and prompts.
ASKS = [
    {"name": "ask", "description": "Asks the user for a name.", "inputSchema": schema()},
    {"name": "links", "description": "Answers with links to resources.", "inputSchema": schema()},
    {"name": "visit", "description": "Works for a user who has visited an address.", "inputSchema": schema()},
]
LINKS = [
    {"type": "resource_link", "uri": "notes://today", "name": "today"},
    {"type": "resource", "resource": {"uri": "notes://monday", "text": "a note"}},
    {"type": "resource_link", "uri": "https://example.com/a", "name": "a"},
]
IMAGE = {"type": "image", "data": "aW1hZ2U=", "mimeType": "image/png"}
RESOURCE = {"uri": "notes://today", "name": "today", "mimeType": "text/plain"}
TEMPLATE = {"uriTemplate": "notes://{day}", "name": "day"}
PROMPT = {"name": "greet", "arguments": [{"name": "who", "required": True}]}


class Refusal(Exception):
    """An error of the protocol with data."""

    def __init__(self, code, data):
        super().__init__("refused")
        self.code = code
        self.data = data


def ask(method, params):
    """Asks the client, and waits for its answer."""
    number = f"ask-{len(ANSWERS)}"
    answered = ANSWERS[number] = [threading.Event(), None]
    write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    answered[0].wait(20)
    return answered[1]


def listed():
    path = os.path.join(WORLD, "tools")
    if "--offers" in sys.argv:
        return TOOLS + ASKS
    if not os.path.exists(path):
        return TOOLS
    with open(path) as file:
        further = [json.loads(line) for line in file if line.strip()]
    names = {tool["name"] for tool in further}
    return [tool for tool in TOOLS if tool["name"] not in names] + [tool for tool in further if not tool.get("gone")]


def text(words, **rest):
    return {"content": [{"type": "text", "text": words}], **rest}


def report(meta):
    for step in (1, 2):
        params = {"progressToken": meta.get("progressToken"), "progress": step, "total": 2, "message": f"step {step}"}
        write({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def call(params):
    name, arguments, meta = params["name"], params.get("arguments", {}), params.get("_meta", {})
    if name == "echo":
        return text("", structuredContent={"text": arguments["text"], "meta": meta})
    if name == "say":
        if "--watch" in sys.argv:
            note("said", arguments["text"])
        return text(arguments["text"])
    if name == "who":
        told = {key: os.environ[key] for key in sorted(os.environ) if key.startswith("COUNTERSIGN_") or key == "TOKEN"}
        return text("", structuredContent={"pid": os.getpid(), "env": told, "folder": os.getcwd()})
    if name == "fail":
        if arguments["text"] == "leak":
            error = {"code": "NOT_FOUND", "message": "m", "details": {"seen": [os.environ["TOKEN"]]}}
            return text(os.environ["TOKEN"], isError=True, structuredContent={"error": error})
        if arguments["text"] == "picture":
            return {"content": [IMAGE, {"type": "text", "text": "see the picture"}, LINKS[2]], "isError": True}
        return text(arguments["text"], isError=True)
    if name == "mixed":
        image = IMAGE | {"data": "A" * arguments["size"]} if "size" in arguments else IMAGE
        blocks = [{"type": "text", "text": "repeats the answer"}, image, LINKS[0]]
        return {"content": blocks, "structuredContent": {"n": 1}}
    if name == "links":
        return {"content": [{"type": "text", "text": "see"}, *LINKS]}
    if name == "visit":
        if os.path.exists(os.path.join(WORLD, "visited")):
            return text("welcome")
        url = "https://example.com/grant"
        asked = {"mode": "url", "elicitationId": "grant-1", "url": url, "message": "Grant it."}
        raise Refusal(-32042, {"elicitations": [asked]})
    if name.startswith("lie"):
        note("effects", name)
        return text("", structuredContent={"n": arguments.get("n", "many")})
    if name == "find":
        note("asked", json.dumps({"arguments": arguments, "key": meta.get("dev.countersign/idempotency_key")}))
        if arguments["how"] == "look blind":
            return text("the index is being rebuilt", isError=True)
        kept = lines("effects")
        found = [{"order": kept.index(arguments["key"])}] if arguments["key"] in kept else []
        return text(json.dumps({"orders": found}))
    if name == "order" and arguments["then"] == "fall" and not lines("fallen"):
        note("fallen", "before its effect")
        os._exit(1)
    if name == "order":
        note("effects", meta.get("dev.countersign/idempotency_key", "no key"))
        then = arguments["then"]
        if then in ("die", "blind"):
            os._exit(1)
        if then == "hang":
            time.sleep(3600)
        if then == "garbage":
            sys.stdout.write("this is no message\n")
            sys.stdout.flush()
        return text("done")
    if name == "ask":
        question = {"message": "Your name?", "requestedSchema": schema(name=TEXT)}
        if os.path.exists(os.path.join(WORLD, "visited")):
            done = {"elicitationId": "grant-1"}
            write({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": done})
        write({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "asking"}})
        return text(json.dumps(ask("elicitation/create", question)["result"]))
    if name == "slow":
        report(meta)
        return None
    if name == "steps":
        report(meta)
        return text("done")
    raise KeyError(name)


def answer(message):
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        info = {"name": "plain", "version": "1"}
        version = params["protocolVersion"]
        has = {"tools": {"listChanged": True}}
        if "--offers" in sys.argv:
            has |= {"resources": {"subscribe": True}, "prompts": {}, "completions": {}}
        return {"protocolVersion": version, "capabilities": has, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": listed()}
    if method == "tools/call":
        return call(params)
    if method == "resources/list":
        return {"resources": [RESOURCE]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [TEMPLATE]}
    if method == "resources/read":
        if "TOKEN" in os.environ:
            note("read", os.environ["TOKEN"])
        return {"contents": [{"uri": params["uri"], "text": f"the text of {params['uri']}"}]}
    if method == "resources/subscribe":
        note("watched", f"+ {params['uri']}")
        threading.Thread(target=wait_for_touch, args=(params["uri"],), daemon=True).start()
        return {}
    if method == "resources/unsubscribe":
        note("watched", f"- {params['uri']}")
        return {}
    if method == "prompts/list":
        return {"prompts": [PROMPT]}
    if method == "prompts/get":
        if params["arguments"]["who"] == "links":
            return {"messages": [{"role": "user", "content": link} for link in LINKS]}
        told = f"{params['name']} {params['arguments']['who']}"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": told}}]}
    if method == "completion/complete":
        return {"completion": {"values": [json.dumps(params["ref"], sort_keys=True)]}}
    raise LookupError(method)


def handle(message):
    try:
        result = answer(message)
    except Refusal as error:
        told = {"code": error.code, "message": str(error), "data": error.data}
        write({"jsonrpc": "2.0", "id": message["id"], "error": told})
        return
    except LookupError as error:
        code = -32602 if isinstance(error, KeyError) else -32601
        write({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": str(error)}})
        return
    if result is not None:
        write({"jsonrpc": "2.0", "id": message["id"], "result": result})


def wait_for_touch(uri):
    """Tells the client once when the resource has changed."""
    while not os.path.exists(os.path.join(WORLD, "touched")):
        time.sleep(0.02)
    write({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})


def watch():
    """Tells the client when the file of definitions has changed."""
    path = os.path.join(WORLD, "tools")
    before = None
    while True:
        now = os.stat(path).st_mtime_ns if os.path.exists(path) else None
        if now != before:
            before = now
            write({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        time.sleep(0.02)


if __name__ == "__main__":
    note("started", str(os.getpid()))
    if "--broken" in sys.argv:
        sys.exit("the licence has expired" + os.environ.get("TOKEN", ""))
    # Longer than the question for the newest era waits, but only once: what was downloaded is there the next time.
    if "--late" in sys.argv and len(lines("started")) == 1:
        time.sleep(11)
    # A grandchild, as a launcher such as npx has one: it has to end with the rest.
    if "--grandchild" in sys.argv and os.fork() == 0:
        note("grandchildren", str(os.getpid()))
        time.sleep(3600)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/initialized" and "--watch" in sys.argv:
            threading.Thread(target=watch, daemon=True).start()
        elif message.get("method") == "notifications/cancelled":
            note("cancelled", str(message["params"]["requestId"]))
        elif message.get("id") in ANSWERS:
            answered = ANSWERS[message["id"]]
            answered[1] = message
            answered[0].set()
        elif "id" in message and "method" in message:
            threading.Thread(target=handle, args=(message,), daemon=True).start()
    # As a server does that does not notice that nobody is left.
    if "--stubborn" in sys.argv:
        time.sleep(3600)
