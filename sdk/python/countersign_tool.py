"""Python functions as tools behind Countersign: one file, standard library only, Python 3.9 or newer. Copy it, or
`pip install ./sdk/python`. The contract on the wire is docs/http-tool.md of the project.

    from countersign_tool import Context, serve, tool
    @tool("orders.place", effect="write")
    def place_order(ctx: Context, sku: str, quantity: int = 1) -> dict:
        '''Places an order for an item.'''
    serve("orders")        # `python app.py` serves it, `python app.py --countersign` prints its configuration
"""
import asyncio, base64, collections.abc as abc, concurrent.futures, contextvars, dataclasses, datetime as dt, enum
import functools, hashlib, hmac, http.server, inspect, json, logging, os, re, sys, threading, time, types, typing, uuid
from decimal import Decimal

STATUSES = {"INVALID_ARGUMENT": 400, "UNAUTHORIZED": 401, "FORBIDDEN": 403, "NOT_FOUND": 404, "CONFLICT": 409,
            "RATE_LIMITED": 429, "TIMEOUT": 504, "UPSTREAM_ERROR": 502, "NEEDS_USER_CONFIRMATION": 428,
            "COMPLIANCE_BLOCKED": 451, "PRICE_CHANGED": 409, "OUT_OF_STOCK": 409, "ADDRESS_INVALID": 422}
BODY_BYTES_MAX = 16 * 1024 * 1024
TOOLS = {}
DID_NOT_HAPPEN = {"outcome": "did_not_happen"}  # answers of a reconcile function; any other means that it does not know
happened = lambda data: {"outcome": "happened", "data": data}
_current = contextvars.ContextVar("countersign_tool", default=None)
current = _current.get  # the context of the running call; None if Countersign did not call

class ToolError(Exception):
    """Told to the caller. Only TIMEOUT and UPSTREAM_ERROR leave open what was changed, unless `retry_safe=True`."""
    def __init__(self, code, message, hint=None, details=None, **members):
        super().__init__(message)
        members = {"code": code, "message": message, "hint": hint, "details": details, **members}
        self.status, self.body = STATUSES[code], {"error": {at: it for at, it in members.items() if it is not None}}

@dataclasses.dataclass(frozen=True)
class Context:
    """The call. A parameter of this type gets it, and so does `current()`."""
    tool: str
    key: typing.Optional[str]               # the same for every attempt of one call; None for a read and a dry run
    deadline: typing.Optional[dt.datetime]  # the answer is not used after it
    dry_run: bool                           # answer as if, change nothing
    request_id: typing.Optional[str]
    traceparent: typing.Optional[str]
    user: typing.Optional[str]              # verified; None if there is no identity secret
    realm: typing.Optional[str]
    actor: typing.Optional[dict]            # {"type": "agent" | "user" | "system", "id": ...}
    def remaining(self):
        """Seconds until the deadline; negative after it."""
        return (self.deadline - dt.datetime.now(dt.timezone.utc)).total_seconds() if self.deadline else float("inf")

def tool(name=None, *, effect="write", key=None, confirm=None, dry_run=False, reconcile=None, grace_seconds=30,
         errors=None, description=None, **settings):
    """Makes a tool of a function and returns the function as it was. `key`: names of the arguments that make two calls
    one call, or "required". `confirm`: True or terms. `dry_run`: it honours `ctx.dry_run`. `reconcile`: a function that
    says what became of a call. `errors`: classes of exceptions and their codes. Other settings: as given."""
    def made(function):
        own = Tool(name or function.__name__, function, reconcile, errors or {})
        fields = None if key is None or isinstance(key, str) else ["/" + field for field in key]
        entry = {"name": own.name, "upstream": "", "description": description or own.summary, "effect": effect,
                 "key_fields": fields, "key": None if fields else key, "dry_run": "simulate" if dry_run else None,
                 "recovery": {"reconcile": {"grace_seconds": grace_seconds}} if reconcile else None,
                 "confirm": "always" if confirm is True else confirm, **settings, "input": own.schema}
        own.entry = {at: value for at, value in entry.items() if value is not None}
        if not entry["description"] or fields and set(key) - set(own.makers) or own.name in TOOLS:
            raise TypeError(f"{own.name}: no docstring, a key that is no parameter, or a second tool of this name")
        TOOLS[own.name] = own
        return function
    return made

class Tool:
    def __init__(self, name, function, reconcile, errors):
        self.name, self.function, self.reconcile, self.errors = name, function, reconcile, errors
        self.schema = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
        self.makers, self.defaults, defs, hints = {}, {}, {}, typing.get_type_hints(function, include_extras=True)
        text, plain = inspect.getdoc(function) or "", typing.get_type_hints(function)
        self.summary = " ".join(re.split(r"\n\s*\n|\n\s*(?:Args:|:param)", text, maxsplit=1)[0].split())
        for at, parameter in inspect.signature(function).parameters.items():
            hint = hints.get(at, typing.Any)
            if hint is Context or at == "ctx":
                continue
            if hasattr(parameter.default, "metadata"):  # FastAPI's Query(1, ge=1), pydantic's Field(1, ge=1)
                hint = typing.Annotated[hint, parameter.default]
            schema, self.makers[at] = _kind(hint, defs, (f"{name}, the parameter {at}",))
            default = getattr(parameter.default, "default", parameter.default)
            is_given = not (default in (parameter.empty, ...) or "Undefined" in type(default).__name__)
            self.defaults[at] = default if is_given else None
            self.schema["required"] += [] if is_given or type(None) in typing.get_args(plain.get(at)) else [at]
            plainly = float(default) if isinstance(default, Decimal) else default
            schema.update({"default": json.loads(_json(plainly))} if is_given and default is not None else {})
            # A line of the docstring, `name: text` or `:param name: text`, with what is indented below it.
            said = re.search(rf"^[ \t]*(?::param )?{at}(?: \(.*\))?: *(.+(?:\n[ \t]{{6,}}.+)*)", text, re.M)
            self.schema["properties"][at] = {**schema, **({"description": " ".join(said[1].split())} if said else {})}
        self.schema.update({"$defs": defs} if defs else {})

    def call(self, function, ctx, body):
        made, at = {}, ""
        try:
            given = _is(dict, json.loads(body, parse_float=Decimal))
            for at in [*self.schema["required"], *given]:
                made[at] = self.makers[at](given[at])
        except (ArithmeticError, KeyError, RecursionError, TypeError, ValueError):
            raise ToolError("INVALID_ARGUMENT", f"{at or 'the body'} is missing, unknown or not valid") from None
        _current.set(ctx)
        takes = inspect.signature(function).parameters  # what is not an argument is the context
        return function(**{at: made.get(at, self.defaults[at]) if at in self.makers else ctx for at in takes})

def _failure(own, error, request_id):
    """The status and the body of an error. Only texts that were written for callers are returned."""
    code = next((code for kind, code in (own.errors if own else {}).items() if isinstance(error, kind)), None)
    error = ToolError(code, str(error)) if code else error
    if isinstance(error, ToolError):
        return error.status, error.body
    status, detail = getattr(error, "status_code", None), getattr(error, "detail", None)
    if isinstance(status, int) and 400 <= status < 600 and isinstance(detail, str):
        return status, {"detail": detail}  # FastAPI's HTTPException
    logging.getLogger("countersign_tool").error("the tool %s failed in %s", own.name, request_id, exc_info=error)
    code = "TIMEOUT" if isinstance(error, (TimeoutError, asyncio.TimeoutError)) else "UPSTREAM_ERROR"
    return 500, {"error": {"code": code, "message": "the tool failed; its log says why"}}

def _kind(hint, defs, above):
    """The JSON Schema of a type, and the function that makes a value of it from a JSON value."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    inner = lambda part: _kind(part, defs, (*above, hint))
    schema, make = next((it for kind, it in _SCALARS.items() if kind is hint), (None, None))
    if make:
        return dict(schema), make
    if origin is typing.Annotated or str(origin).endswith("Required"):  # the latter in a TypedDict
        schema, make = inner(args[0])
        for note in args[1:]:
            text = note if isinstance(note, str) else getattr(note, "description", None)
            schema.update(note if isinstance(note, dict) else {"description": text} if text else {})
            for part in (note, *getattr(note, "metadata", ())):  # annotated_types, pydantic's Field()
                limits = {word: getattr(part, at, None) for at, word in _LIMITS.items()}
                schema.update({word: limit for word, limit in limits.items() if limit is not None})
        return schema, make
    if origin in _UNIONS:
        kinds = [inner(part) for part in args if part is not type(None)]
        schema, make = kinds[0] if len(kinds) == 1 else ({"anyOf": [schema for schema, _ in kinds]}, _loose)
        return schema, lambda value: None if value is None else make(value)
    if origin is typing.Literal or inspect.isclass(hint) and issubclass(hint, enum.Enum):
        members = {json.dumps(getattr(member, "value", member)): member for member in args or hint}
        values = [json.loads(text) for text in members]
        kind = {"type": "string"} if {*map(type, values)} == {str} else {}
        return {**kind, "enum": values}, lambda value: members[json.dumps(value)]
    if origin in (list, abc.Sequence) or hint is list:
        schema, make = inner(args[0] if args else typing.Any)
        return {"type": "array", "items": schema}, lambda value: [make(item) for item in _is(list, value)]
    if origin in (dict, abc.Mapping) or hint is dict:
        schema, make = inner(args[1] if args else typing.Any)
        return ({"type": "object", "additionalProperties": schema or True},
                lambda value: {at: make(item) for at, item in _is(dict, value).items()})
    if hasattr(hint, "model_json_schema"):  # pydantic
        schema = hint.model_json_schema()
        defs.update(schema.pop("$defs", {}))
        return schema, lambda value: hint.model_validate(_loose(value))
    if (dataclasses.is_dataclass(hint) or hasattr(hint, "__required_keys__")) and hint not in above:
        parts = {at: inner(part) for at, part in typing.get_type_hints(hint, include_extras=True).items()}
        fields = getattr(hint, "__dataclass_fields__", {}).values()  # one without a default has MISSING twice
        needed = [field.name for field in fields if field.default is field.default_factory]
        needed += sorted(getattr(hint, "__required_keys__", ()))
        schema = {"type": "object", "additionalProperties": False, "required": needed,
                  "properties": {at: schema for at, (schema, _) in parts.items()}}
        return schema, lambda value: hint(**{at: parts[at][1](item) for at, item in _is(dict, value).items()})
    raise TypeError(f"{above[0]}: there is no JSON form of {hint!r}; use a dataclass, a TypedDict or a standard type")

def _is(kind, it):  # `int()` of a large exponent would write as many digits; `%` refuses it first
    if type(it) is not kind and not (kind is int and type(it) is Decimal and it % 1 == 0 and it == int(it)):
        raise TypeError(kind.__name__)
    return kind(it)

def _moment(value):
    value = re.sub(r"\.(\d{1,6})\d*", lambda part: "." + part[1].ljust(6, "0"), value)
    return dt.datetime.fromisoformat(re.sub("[zZ]$", "+00:00", value))

def _default(value):
    return (value.value if isinstance(value, enum.Enum) else str(value) if isinstance(value, (Decimal, uuid.UUID))
            else value.isoformat() if isinstance(value, dt.date) else dataclasses.asdict(value)
            if dataclasses.is_dataclass(value) else value.model_dump(mode="json"))

_json = lambda value: json.dumps(value, default=_default, allow_nan=False)
_loose = lambda value: json.loads(json.dumps(value, default=float))
_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "pattern": "pattern",
           "min_length": "minLength", "max_length": "maxLength"}
_SCALARS = {typing.Any: ({}, _loose), int: ({"type": "integer"}, lambda value: _is(int, value)),
            str: ({"type": "string"}, lambda it: _is(str, it)), bool: ({"type": "boolean"}, lambda it: _is(bool, it)),
            float: ({"type": "number"}, lambda value: float(value + 0)),
            Decimal: ({"type": "number"}, lambda value: Decimal(value + 0)),
            dt.datetime: ({"type": "string", "format": "date-time", "x-kind": "timestamp"}, _moment),
            dt.date: ({"type": "string", "format": "date"}, dt.date.fromisoformat)}

def verify(token, secret, upstream, tool, purpose, key, body):
    """The claims of a `Countersign-Identity`, checked in the order of the page; None if a check fails."""
    unb64 = lambda part: _is(dict, json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))))
    try:
        head, payload, mac = token.split(".")
        own = base64.urlsafe_b64encode(hmac.new(secret, f"{head}.{payload}".encode(), hashlib.sha256).digest())
        if unb64(head)["alg"] != "HS256" or not hmac.compare_digest(own.rstrip(b"="), mac.encode()):
            return None
        claims = unb64(payload)
        return claims if (claims["iss"] == "countersign" and claims["aud"] == upstream and claims["exp"] > time.time()
            and claims["tool"] == tool and claims["purpose"] == purpose and claims.get("idempotency_key") == key
            and claims["body_sha256"] == hashlib.sha256(body).hexdigest()) else None
    except (KeyError, TypeError, ValueError):
        return None

def secret_of(name):
    variable = re.sub(r"\W", "_", name).upper() + "_IDENTITY_SECRET"
    secret = os.environ.get(variable, "").strip().encode()
    if 0 < len(secret) < 32:
        raise ValueError(f"{variable} has {len(secret)} bytes; it needs 32 or more")
    if not secret:
        logging.getLogger("countersign_tool").warning("%s is not set: callers are not verified", variable)
    return variable, secret

async def _answer(upstream, secret, path, headers, body):
    """The status and the body of the answer to a POST."""
    name, _, twin = path.rsplit("/tools/", 1)[-1].strip("/").partition("/")
    own, is_dry, key = TOOLS.get(name), headers.get("countersign-dry-run") == "true", headers.get("idempotency-key")
    try:
        token, purpose = headers.get("countersign-identity", ""), twin or ("dry_run" if is_dry else "call")
        claims = verify(token, secret, upstream, name, purpose, key, body) if secret else {}
        if claims is None:
            return 401, b'{"message": "Countersign-Identity was refused"}'
        function = {"": own and own.function, "reconcile": own and own.reconcile}.get(twin)
        if not function:
            raise ToolError("NOT_FOUND", "there is no such tool here")
        if is_dry and "dry_run" not in own.entry or not (is_dry or key or own.entry["effect"] == "read"):
            raise ToolError("INVALID_ARGUMENT", "no Idempotency-Key, or a dry run of a tool that cannot simulate")
        deadline = headers.get("countersign-deadline")
        ctx = Context(name, key, deadline and _moment(deadline), is_dry, headers.get("x-request-id"),
                      headers.get("traceparent"), claims.get("sub"), claims.get("realm"), claims.get("act"))
        if ctx.remaining() <= 0:
            raise ToolError("TIMEOUT", "the deadline has passed; nothing was changed", retry_safe=True)
        work = own.call if inspect.iscoroutinefunction(function) else functools.partial(asyncio.to_thread, own.call)
        data = await work(function, ctx, body)
        is_known = not twin or isinstance(data, dict) and "outcome" in data
        return 200, _json(data if is_known else {"outcome": "unknown"}).encode()
    except Exception as error:
        status, answer = _failure(own, error, headers.get("x-request-id"))
        return status, _json(answer).encode()

def asgi(name):
    """An ASGI application, to be mounted: `app.mount("/tools", asgi("orders"))`."""
    secret = secret_of(name)[1]
    async def app(scope, receive, send):
        body, more = b"", True
        while more and len(body) <= BODY_BYTES_MAX:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = {at.decode("latin-1").lower(): value.decode("latin-1") for at, value in scope["headers"]}
        ok = scope["method"] == "POST" and not more
        code, answer = await _answer(name, secret, scope["path"], headers, body) if ok else (413 if more else 405, b"")
        await send({"type": "http.response.start", "status": code, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": answer})
    return app

def configuration(name, base_url):
    """The entries of the tools, for countersign.toml."""
    variable, secret = secret_of(name)
    key = lambda at: at if re.fullmatch(r"[\w-]+", at, re.A) else json.dumps(at, ensure_ascii=False)
    def text(value):
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key(at)} = {text(item)}" for at, item in value.items()) + "}"
        return "[" + ", ".join(map(text, value)) + "]" if type(value) is list else json.dumps(value, ensure_ascii=False)
    def lines(path, value):
        if isinstance(value, dict) and value and len(path) < 3:
            return [line for at, item in value.items() for line in lines((*path, key(at)), item)]
        return [".".join(path) + " = " + text(value)]
    made = ["[[upstream]]", *lines((), {"name": name, "base_url": base_url, "allow_private": ["loopback"]}),
            f'{"" if secret else "# "}identity_secret = "env:{variable}"  # the same in both processes']
    for own in TOOLS.values():
        made += ["", "[[tool]]", *lines((), {**own.entry, "upstream": name})]
    return "\n".join(made) + "\n"

def serve(name, host="127.0.0.1", port=9000):
    """Serves the tools (PORT is the port [default: 9000]); with `--countersign` it prints their configuration instead."""
    port, is_asked = int(os.environ.get("PORT", port)), "--countersign" in sys.argv
    if is_asked or {"-h", "--help"} & {*sys.argv}:
        return print(configuration(name, f"http://{host}:{port}") if is_asked else serve.__doc__ + "\n", end="")
    (variable, secret), loop = secret_of(name), asyncio.new_event_loop()
    if not secret and host not in ("127.0.0.1", "::1", "localhost"):
        sys.exit(f"error: set {variable} before other machines can call; without it no caller is verified")
    loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(64))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version, wbufsize, disable_nagle_algorithm, timeout = "HTTP/1.1", -1, True, 60
        def do_POST(self):
            length, status, answer = self.headers.get("content-length", ""), 413, b"{}"
            is_good = length.isdecimal() and int(length) <= BODY_BYTES_MAX
            self.close_connection |= not is_good
            if is_good:
                headers = {at.lower(): value for at, value in self.headers.items()}
                call = _answer(name, secret, self.path, headers, self.rfile.read(int(length)))
                status, answer = asyncio.run_coroutine_threadsafe(call, loop).result()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        log_message = lambda *_: None
    server = type("Server", (http.server.ThreadingHTTPServer,), {"request_queue_size": 128})((host, port), Handler)
    print(f"{name}: http://{host}:{server.server_port}", flush=True)
    server.serve_forever()
