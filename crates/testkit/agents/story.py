"""The scripted model: it plays a story and knows only what a request shows it.

A script is a generator. It yields `Call`s and gets back the text that the framework made of each result; it yields a
`Say` and gets back what the user says next. The whole conversation is in every request, so `play` starts the script
anew each time and feeds it what the conversation holds. Nothing is kept between two requests: a request that is sent
twice gets the same answer twice.

The first message of the user names the script, as in `[story:shop]`. The last message of the model starts with
`STORY n/m` and goes on with a JSON object of what the model has read, so that a test can compare it with the server.
"""

import ast
import difflib
import functools
import json
import re
from dataclasses import dataclass, field

CODES = (
    "ADDRESS_INVALID|COMPLIANCE_BLOCKED|CONFLICT|FORBIDDEN|INTERNAL_ERROR|INVALID_ARGUMENT|NEEDS_USER_CONFIRMATION|NOT_FOUND|"
    "OUT_OF_STOCK|PRICE_CHANGED|RATE_LIMITED|TIMEOUT|UNAUTHORIZED|UPSTREAM_ERROR"
)
"""The codes of the server's errors: a text with one of them is an answer, other errors are the framework's own."""


# --- the conversation, whatever the dialect -----------------------------------------------------------------------


@dataclass
class User:
    text: str


@dataclass
class Said:
    text: str


@dataclass
class Called:
    id: str
    name: str
    result: str | None = None


@dataclass
class Conversation:
    """What a request holds: the tools by name, each with its schema of arguments, and what was said and called."""

    tools: dict[str, dict] = field(default_factory=dict)
    items: list[User | Said | Called] = field(default_factory=list)

    def answer(self, id, text):
        """Files a result under the newest call of that id. False if there is none that waits for it."""
        for item in reversed(self.items):
            if isinstance(item, Called) and item.id == id and item.result is None:
                item.result = text
                return True
        return False


@dataclass
class Call:
    tool: str
    arguments: dict


@dataclass
class Say:
    text: str


def play(conversation):
    """The model's next turn: a `Say`, or a list of `Call`s with the names that the tools have in this request."""
    users = [item.text for item in conversation.items if isinstance(item, User)]
    named = next((found for text in users if (found := re.search(r"\[story:(\w+)\]", text))), None)
    if named is None or named[1] not in SCRIPTS:
        return Say(f"No story is named; there are {', '.join(SCRIPTS)}. Write [story:NAME].")
    called = [item for item in conversation.items if isinstance(item, Called)]
    replies = _replies(conversation.items)
    script = SCRIPTS[named[1]](Model(conversation.tools))
    turn = next(script)
    while True:
        if isinstance(turn, Say):
            if not replies:
                return turn
            turn = script.send(replies.pop(0))
            continue
        calls = turn if isinstance(turn, list) else [turn]
        now, called = called[: len(calls)], called[len(calls) :]
        if any(item.result is None for item in now):
            return Say("The results of my calls are missing.")
        if len(now) < len(calls):
            return [
                Call(_listed(conversation.tools, call.tool) or call.tool, call.arguments)
                for call in calls[len(now) :]
            ]
        results = [item.result for item in now]
        turn = script.send(results if isinstance(turn, list) else results[0])


def _replies(items):
    """What the user said after each message with which the model ended its turn."""
    replies, ended = [], False
    for item in items:
        if isinstance(item, User) and ended:
            replies.append(item.text)
        ended = isinstance(item, Said)
    return replies


def _listed(tools, name):
    """The name under which a tool is in the request: its own, or with a prefix of the framework."""
    if name in tools:
        return name
    return next((listed for listed in tools if re.search(rf"[^a-z]{name}$", listed)), None)


# --- reading --------------------------------------------------------------------------------------------------------


def values(text):
    """Every JSON value in a text, also JSON within strings, Python literals, and JSON behind one more level of quotes."""
    found = []
    for candidate in (text, text.replace('\\"', '"')):
        found += _decoded(candidate)
        if found:
            break
    if not found:
        try:
            found.append(ast.literal_eval(text.strip()))
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            pass
    return found


def _decoded(text):
    decoder, found, at = json.JSONDecoder(), [], 0
    while (start := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, start.start())
            if isinstance(value, (dict, list)) and value:
                found.append(value)
        except ValueError:
            at = start.start() + 1
    return found


def members(value):
    """Every (name, value) in a value, the outer before the inner, and those of JSON within its strings."""
    if isinstance(value, dict):
        yield from value.items()
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from members(inner)
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        for inner in _decoded(value):
            yield from members(inner)


def read(text, *path):
    """The first value under these names, each somewhere within the one before; `None` if there is none."""
    found = values(text)
    for name in path:
        found = [value for outer in found for key, value in members(outer) if key == name]
    return found[0] if found else None


def evidence(text):
    """The name of the evidence that a result shows: the member of that name, or a link."""
    link = re.search(r"evidence://(ev_[0-9a-f-]+)", text)
    return read(text, "evidence", "snapshot_id") or (link and link[1])


def code(text):
    found = re.search(rf"\b({CODES})\b", text)
    return found and found[1]


def approval(text):
    found = re.search(r"\bap_[0-9a-f]{8,}", text)
    return found and found[0]


def where(text):
    """The place at which a text says that the user can answer."""
    found = re.search(r"https?://[^\s\"'\\)]+|/v1/approvals[^\s\"'\\)]*|countersign approvals[^\"'\\.;,]*", text)
    return found and found[0].rstrip(".,;")


# --- the model ------------------------------------------------------------------------------------------------------


def repeated(text):
    """True if a result says that it is the answer of an earlier call."""
    return text is not None and re.search(r"repeated_call", text, re.I) is not None


class Stuck(Exception):
    pass


class Model:
    """What the model has read so far, and how many steps it has made."""

    def __init__(self, tools):
        self.tools = tools
        self.read = {}
        self.steps = 0
        self.repeats = 0
        self.told = 0
        self.stale = 0

    def step(self, tool, arguments, wanted=None):
        """Calls a tool until it answers. `wanted` reads the values that make it an answer.

        An error that names the right argument is corrected. What is no answer of the server, such as a lost
        connection, is tried again with the same arguments, twice.
        """
        if _listed(self.tools, tool) is None:
            raise Stuck(f"there is no tool {tool}, only {len(self.tools)} others")
        corrections = repeats = 0
        while True:
            text = yield Call(tool, arguments)
            got = wanted(text) if wanted else (None if code(text) else True)
            if got is not None and got is not False:
                self.steps += 1
                return got
            fixed = self.corrected(tool, arguments, text)
            if fixed != arguments and corrections < 2:
                arguments, corrections = fixed, corrections + 1
                continue
            if code(text) is None and repeats < 2:
                repeats += 1
                self.repeats += 1
                continue
            raise Stuck(f"{tool} answered {text[:400]!r}")

    def corrected(self, tool, arguments, text):
        """The arguments with the names that an error suggests.

        Some frameworks refuse a call themselves and give a poor reason. The model then looks at the schema: it takes the nearest
        name, and a number where one is wanted.
        """
        if code(text) is not None:
            return _renamed(arguments, lambda name: _suggested(name, text))
        return _fitted(arguments, self.tools[_listed(self.tools, tool)])

    def meant(self, tool, arguments, text=None):
        """Makes a write that the server may take for a repeat. If it does, the model does what the answer says, five times at most.

        `told` counts answers that say so, and `stale` those that advise the value that was just sent. A model that reads this
        advice takes the next number. Begins with `text`, if the call was already made.
        """
        sent = arguments
        for _ in range(6):
            if text is None:
                text = yield from self.step(tool, sent, lambda text: text if code(text) is None and values(text) else None)
                self.steps -= 1
            if not repeated(text):
                break
            self.told += 1
            advice = re.search(r"add the argument (\w+): (\d+)", text)
            if not advice:
                break
            name, value = advice[1], int(advice[2])
            if sent.get(name, 0) >= value:
                self.stale += 1
                value = sent[name] + 1
            sent, text = arguments | {name: value}, None
        self.steps += 1
        return text

    def asks(self, tool, arguments):
        """Calls a tool that needs the user. Counts as a step if the text names the question."""
        if _listed(self.tools, tool) is None:
            raise Stuck(f"there is no tool {tool}")
        text = yield Call(tool, arguments)
        if code(text) is None and approval(text) is None and read(text, "payment_intent_id") is None:
            text = yield Call(tool, arguments)
        if code(text) == "NEEDS_USER_CONFIRMATION" and approval(text):
            self.steps += 1
            return {"tool": tool, "approval_id": approval(text), "where": where(text), "text": text[:600]}
        raise Stuck(f"{tool} asked nothing: {text[:400]!r}")

    def report(self, of, **more):
        return f"STORY {self.steps}/{of} " + json.dumps(
            {"repeats": self.repeats, "told": self.told, "stale": self.stale} | self.read | more
        )


def _renamed(value, rename):
    if isinstance(value, dict):
        return {rename(name): _renamed(inner, rename) for name, inner in value.items()}
    return [_renamed(inner, rename) for inner in value] if isinstance(value, list) else value


def _fitted(value, schema, root=None):
    """A value with the nearest names of a schema, and with its numbers as numbers."""
    root = root or schema
    schema = _plain(schema, root)
    if isinstance(value, dict) and isinstance(known := schema.get("properties"), dict):
        fitted = {}
        for name, inner in value.items():
            near = [name] if name in known else difflib.get_close_matches(name, known, 1)
            name = near[0] if near else name
            fitted[name] = _fitted(inner, known.get(name, {}), root)
        return fitted
    if isinstance(value, list):
        return [_fitted(inner, schema.get("items", {}), root) for inner in value]
    is_number = isinstance(value, str) and value.isdigit() and "integer" in str(schema.get("type"))
    return int(value) if is_number else value


def _plain(schema, root):
    """A schema without its reference, and with the first of its alternatives that is not null."""
    for _ in range(20):  # a schema may refer to itself
        if (reference := schema.get("$ref", "")).startswith("#/"):
            found = root
            for name in reference[2:].split("/"):
                found = found.get(name, {})
            schema = {name: schema[name] for name in schema if name != "$ref"} | found
            continue
        choices = [one for one in schema.get("anyOf") or schema.get("oneOf") or [] if one.get("type") != "null"]
        if not choices:
            break
        schema = {name: schema[name] for name in schema if name not in ("anyOf", "oneOf")} | choices[0]
    return schema


def _suggested(name, text):
    """The name that an error gives in place of another, or that name itself."""
    found = re.search(rf"/{name}: (?:(?!- /).)*?did you mean \\*[\"'`]?(\w+)", text, re.S)
    return found[1] if found else name


def _script(steps):
    """A script of so many steps: it ends with a report, also where the model is stuck."""

    def decorate(make):
        @functools.wraps(make)
        def script(model):
            more = {}
            try:
                more = (yield from make(model)) or {}
            except Stuck as why:
                more = {"stuck": str(why)}
            while True:
                yield Say(model.report(steps, **more))

        return script

    return decorate


BERLIN = {"country": "DE", "postal_code": "10115"}


@_script(15)
def shop(model):
    """From a question to a draft order and its payment, in fifteen steps; then the user answers, and the model repeats."""
    got, see = model.step, model.read
    see["offer_id"] = yield from got(
        "catalog_search_offers",
        {"query": "wireless earbuds", "ships_to": "DE", "currency": "EUR"},
        lambda text: read(text, "offers", "offer_id"),
    )
    see["sku"] = yield from got(
        "catalog_get_offer_variants", {"offr_id": see["offer_id"]}, lambda text: read(text, "variants", "sku")
    )
    # A misspelt name within, which few clients see, and a number as text, which the server reads.
    items = [{"sku": see["sku"], "quantiy": "3"}]
    see["quote"] = yield from got("pricing_get_realtime_quote", {"items": items, "currency": "EUR"}, _with("quote_id"))
    items = [{"sku": see["sku"], "quantity": 3}]
    see["shipping"], see["option_id"] = yield from got(
        "shipping_quote_options",
        {"items": items, "destination": BERLIN, "currency": "EUR"},
        lambda text: _all(evidence(text), read(text, "options", "option_id")),
    )
    see["cart_id"] = yield from got("cart_create", {"currency": "EUR"}, lambda text: read(text, "cart_id"))
    yield from got(
        "cart_add_item", {"cart_id": see["cart_id"], "sku": see["sku"], "quantity": 3}, lambda text: read(text, "cart_id")
    )
    yield from got(
        "checkout_select_shipping_option",
        {
            "cart_id": see["cart_id"],
            "shipping_snapshot_id": see["shipping"],
            "shipping_option_id": see["option_id"],
        },
        lambda text: read(text, "cart_id"),
    )
    see["tax"] = yield from got(
        "tax_estimate_duties_and_taxes",
        {
            "quote_snapshot_id": see["quote"],
            "shipping_snapshot_id": see["shipping"],
            "shipping_option_id": see["option_id"],
            "destination": BERLIN,
        },
        _with("incoterm"),
    )
    see["compliance"] = yield from got(
        "compliance_check_item", {"items": items, "destination": BERLIN}, _with("decision")
    )
    see["total"] = yield from got(
        "checkout_compute_total",
        {
            "cart_id": see["cart_id"],
            "quote_snapshot_id": see["quote"],
            "tax_snapshot_id": see["tax"],
            "compliance_snapshot_id": see["compliance"],
        },
        _with("breakdown"),
    )
    parts = [see[part] for part in ("quote", "shipping", "tax", "compliance", "total")]
    see["bundle"] = yield from got("evidence_create_snapshot", {"snapshot_ids": parts}, _with("entries"))
    see["draft_order_id"] = yield from got(
        "checkout_create_draft_order",
        {"cart_id": see["cart_id"], "evidence_snapshot_id": see["bundle"]},
        lambda text: read(text, "draft_order_id"),
    )
    see["amount"] = yield from got(
        "checkout_lock_price_and_stock",
        {"draft_order_id": see["draft_order_id"]},
        lambda text: read(text, "lock_id") and read(text, "total", "amount"),
    )
    payment = {"draft_order_id": see["draft_order_id"], "amount": see["amount"], "currency": "EUR"}
    asked = [(yield from model.asks("payment_create_payment_intent", payment))]
    model.steps -= 1  # the note and its removal are one step
    yield from got("notes_add", {"text": f"paid nothing yet for {see['draft_order_id']}"}, lambda text: read(text, "id"))
    asked.append((yield from model.asks("notes_clear", {"keep": 0})))
    yield Say(model.report(15, asked=asked))
    # The user has answered both questions: the same calls again.
    ends = []
    for tool, arguments in (("payment_create_payment_intent", payment), ("notes_clear", {"keep": 0})):
        text = yield Call(tool, arguments)
        if code(text) is None and not values(text):
            text = yield Call(tool, arguments)
        ends.append({"tool": tool, "code": code(text) or "OK", "text": text[:600]})
    return {"asked": asked, "ends": ends}


@_script(5)
def writes(model):
    """Three writes and what there is afterwards: a test loses answers of the writes."""
    got, see = model.step, model.read
    see["cart_id"] = yield from got("cart_create", {"currency": "EUR"}, lambda text: read(text, "cart_id"))
    yield from got(
        "cart_add_item",
        {"cart_id": see["cart_id"], "sku": "SKU-0002-01", "quantity": 2},
        lambda text: read(text, "cart_id"),
    )
    see["note"] = yield from got("notes_add", {"text": "written once"}, lambda text: read(text, "id"))
    see["quantity"] = yield from got(
        "cart_get", {"cart_id": see["cart_id"]}, lambda text: read(text, "quantity")
    )
    notes = yield from got("notes_list", {}, lambda text: text if "written once" in text else None)
    see["notes"] = len(set(re.findall(r"\bn_\d+", notes)))


@_script(16)
def everything(model):
    """Four rounds over four servers; what becomes of each call is read and told, and never tried again."""
    rounds = []
    model.read["rounds"] = rounds
    for number in range(1, 5):
        calls = {
            "catalog.search_offers": {"query": "wireless earbuds", "ships_to": "DE", "currency": "EUR"},
            "weather.forecast": {"city": "Berlin"},
            "desk.open_ticket": {"title": f"round {number}"},
            "parcel.track": {"parcel": f"P-{number}"},
        }
        ends = {}
        for tool, arguments in calls.items():
            text = yield Call(tool.replace(".", "_"), arguments)
            ends[tool] = code(text) or "OK"
            model.steps += 1
        rounds.append(ends)
        if number < 4:
            yield Say(model.report(16))


@_script(2)
def hello(model):
    """One write and one read."""
    model.read["note"] = yield from model.step("notes_add", {"text": "hello"}, lambda text: read(text, "id"))
    yield from model.step("notes_list", {}, lambda text: True if "hello" in text else None)


@_script(2)
def form(model):
    """A call that needs the user, who answers a form of the server while the call waits."""
    yield from model.step("notes_add", {"text": "hello"}, lambda text: read(text, "id"))
    model.read["end"] = yield from model.step(
        "notes_clear",
        {"keep": 0},
        lambda text: "cleared" if read(text, "cleared") is not None else code(text) and text[:600],
    )


@_script(4)
def pause(model):
    """Two calls, then the user's turn, then two calls: a test restarts the server in between."""
    got, see = model.step, model.read
    see["cart_id"] = yield from got("cart_create", {"currency": "EUR"}, lambda text: read(text, "cart_id"))
    yield from got("notes_add", {"text": "before the pause"}, lambda text: read(text, "id"))
    yield Say(model.report(4))
    yield from got(
        "cart_add_item",
        {"cart_id": see["cart_id"], "sku": "SKU-0002-01", "quantity": 2},
        lambda text: read(text, "cart_id"),
    )
    see["quantity"] = yield from got(
        "cart_get", {"cart_id": see["cart_id"]}, lambda text: read(text, "quantity")
    )


# Writes that are meant twice. Where the second call gets the first answer, the model does as the text says.

NOTE = {"text": "again"}


@_script(4)
def twice(model):
    """The same note twice, with a look at the notes in between."""
    yield from model.step("notes_add", NOTE, lambda text: read(text, "id"))
    yield from model.step("notes_list", {}, lambda text: True if "again" in text else None)
    yield from model.meant("notes_add", NOTE)
    yield from _count_notes(model)


@_script(5)
def between(model):
    """An item, another item, and the first one again: A, B, A."""
    see = model.read
    see["cart_id"] = yield from model.step("cart_create", {"currency": "EUR"}, lambda text: read(text, "cart_id"))
    item = {"cart_id": see["cart_id"], "sku": "SKU-0002-01", "quantity": 1}
    yield from model.step("cart_add_item", item, lambda text: read(text, "lines"))
    yield from model.step("cart_add_item", item | {"sku": "SKU-0003-01"}, lambda text: read(text, "lines"))
    yield from model.meant("cart_add_item", item)
    lines = yield from model.step("cart_get", {"cart_id": see["cart_id"]}, lambda text: read(text, "lines"))
    see["made"] = {line["sku"]: line["quantity"] for line in lines}


@_script(3)
def parallel(model):
    """The same note in two calls of one message."""
    both = yield [Call("notes_add", NOTE), Call("notes_add", NOTE)]
    for text in both:
        yield from model.meant("notes_add", NOTE, text)
    yield from _count_notes(model)


@_script(3)
def turns(model):
    """The same note in two turns of the user."""
    yield from model.meant("notes_add", NOTE)
    yield Say(model.report(3))
    yield from model.meant("notes_add", NOTE)
    yield from _count_notes(model)


@_script(2)
def once(model):
    """A note, by a model that knows of no other. A test tells the story in several conversations."""
    yield from model.meant("notes_add", NOTE)
    yield from _count_notes(model)


def _count_notes(model):
    notes = yield from model.step("notes_list", {}, lambda text: text if "again" in text else None)
    model.read["made"] = len(set(re.findall(r"\bn_\d+", notes)))


def _all(*parts):
    return parts if all(parts) else None


def _with(member):
    """Reads the evidence of a result that has this member."""
    return lambda text: evidence(text) if read(text, member) is not None else None


SCRIPTS = {
    script.__name__: script
    for script in (shop, writes, everything, hello, form, pause, twice, between, parallel, turns, once)
}
