"""Tests of countersign_tool.py: `python3 -m unittest discover sdk/python`."""
import ast, asyncio, base64, dataclasses, datetime as dt, enum, hashlib, hmac, json, logging, pathlib, subprocess, sys, time, typing
import unittest
from decimal import Decimal

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import countersign_tool as sdk
from countersign_tool import Context, DID_NOT_HAPPEN, ToolError, current, happened, tool

ROOT = pathlib.Path(__file__).parents[2]
SECRET = b"0123456789abcdef0123456789abcdef"


class Speed(enum.Enum):
    STANDARD = "standard"
    EXPRESS = "express"


@dataclasses.dataclass
class Line:
    sku: str
    quantity: typing.Annotated[int, {"minimum": 1}] = 1


class Address(typing.TypedDict):
    city: str


class Limit:
    """As annotated_types and pydantic have it."""
    def __init__(self, **limits):
        vars(self).update(limits)


def object_of(**properties):
    required = sorted(properties)
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def sign(secret=SECRET, alg="HS256", **changes):
    claims = {"iss": "countersign", "aud": "svc", "sub": "corp::ann", "realm": "corp", "tool": "t.write", "purpose": "call",
              "act": {"type": "agent", "id": "a_1"}, "request_id": "req_1", "idempotency_key": "k_1", "iat": 1,
              "exp": int(time.time()) + 60, "body_sha256": hashlib.sha256(b'{"n": 1}').hexdigest(), **changes}
    claims = {name: value for name, value in claims.items() if value is not None}
    b64 = lambda raw: base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    text = b64(json.dumps({"alg": alg, "typ": "JWT"}).encode()) + "." + b64(json.dumps(claims).encode())
    return text + "." + b64(hmac.new(secret, text.encode(), hashlib.sha256).digest())


class Types(unittest.TestCase):
    def test_a_type_is_a_schema_and_makes_values(self):
        moment = dt.datetime(2026, 1, 2, 3, 4, 5, 600000, dt.timezone.utc)
        text, whole = {"type": "string"}, {"type": "integer"}
        timestamp = {"type": "string", "format": "date-time", "x-kind": "timestamp"}
        line = {**object_of(sku=text, quantity={"type": "integer", "minimum": 1}), "required": ["sku"]}
        for hint, schema, given, expected in [
            (str, text, '"a"', "a"),
            (int, whole, "2", 2),
            (int, whole, "2.0", 2),
            (float, {"type": "number"}, "1", 1.0),
            (bool, {"type": "boolean"}, "true", True),
            (Decimal, {"type": "number"}, "1.10", Decimal("1.10")),
            (dt.date, {"type": "string", "format": "date"}, '"2026-01-02"', dt.date(2026, 1, 2)),
            (dt.datetime, timestamp, '"2026-01-02T03:04:05.6Z"', moment),
            (dt.datetime, timestamp, '"2026-01-02T03:04:05.600000001Z"', moment),
            (typing.Optional[int], whole, "null", None),
            (typing.Optional[int], whole, "3", 3),
            (typing.Union[int, str], {"anyOf": [whole, text]}, "1.5", 1.5),
            (typing.List[int], {"type": "array", "items": whole}, "[1]", [1]),
            (list, {"type": "array", "items": {}}, "[1.5]", [1.5]),
            (typing.Dict[str, int], {"type": "object", "additionalProperties": whole}, '{"a": 1}', {"a": 1}),
            (typing.Literal["a", 1], {"enum": ["a", 1]}, "1", 1),
            (Speed, {"type": "string", "enum": ["standard", "express"]}, '"express"', Speed.EXPRESS),
            (Line, line, '{"sku": "a"}', Line("a")),
            (typing.List[Line], {"type": "array", "items": line}, '[{"sku": "a", "quantity": 2}]', [Line("a", 2)]),
            (Address, object_of(city=text), '{"city": "x"}', {"city": "x"}),
            (typing.Annotated[int, "How many.", {"maximum": 9}],
             {"type": "integer", "description": "How many.", "maximum": 9}, "1", 1),
            (typing.Annotated[int, Limit(ge=1, le=None)], {"type": "integer", "minimum": 1}, "1", 1),
            (typing.Annotated[str, Limit(description="Text.", metadata=[Limit(max_length=3)])],
             {"type": "string", "description": "Text.", "maxLength": 3}, '"a"', "a"),
            (typing.Any, {}, '{"a": 1.5}', {"a": 1.5}),
        ]:
            with self.subTest(hint=hint, given=given):
                made, make = sdk._kind(hint, {}, ("here",))
                self.assertEqual(made, schema)
                value = make(json.loads(given, parse_float=Decimal))
                self.assertEqual((value, type(value)), (expected, type(expected)))

    def test_what_does_not_fit_is_refused(self):
        for hint, given in [(str, "1"), (int, "true"), (int, "1.5"), (int, '"1"'), (int, "1e9999999"), (int, "1e-9999999"), (bool, "1"), (float, '"1"'), (dt.datetime, '"soon"'),
                            (typing.List[int], '{"a": 1}'), (Speed, '"fast"'), (typing.Literal["a"], '"b"'), (Line, "{}"),
                            (Line, '{"sku": "a", "colour": 1}'), (typing.Dict[str, int], "[]")]:
            with self.subTest(hint=hint, given=given), self.assertRaises((ArithmeticError, KeyError, TypeError, ValueError)):
                sdk._kind(hint, {}, ("here",))[1](json.loads(given, parse_float=Decimal))

    def test_a_type_without_json_form_is_named(self):
        @dataclasses.dataclass
        class Node:
            pass
        Node.__annotations__ = {"next": Node}
        for hint in (bytes, Node):
            with self.assertRaisesRegex(TypeError, "t.x, the parameter raw: there is no JSON form"):
                def x(raw): "Text."
                x.__annotations__ = {"raw": hint}
                tool("t.x")(x)

    def test_a_function_makes_an_entry(self):
        @tool("t.entry", key=["sku"], confirm=True, dry_run=True, deadline_ms=5, reconcile=lambda ctx: None, grace_seconds=7)
        def entry(ctx: Context, sku: str, count: typing.Annotated[int, "Overridden."] = 2, price: Decimal = Decimal("1.5"),
                  note: typing.Optional[str] = None, last: typing.Annotated[typing.Optional[str], "x"] = None):
            """Does
            something.

            More about it.

            Args:
                count (int): How many
                    there are.
                note: A note: short.
            """
        own = sdk.TOOLS.pop("t.entry").entry
        properties = {
            "sku": {"type": "string"}, "count": {"type": "integer", "description": "How many there are.", "default": 2},
            "price": {"type": "number", "default": 1.5}, "note": {"type": "string", "description": "A note: short."},
            "last": {"type": "string", "description": "x"},
        }
        self.assertEqual(own, {
            "name": "t.entry", "upstream": "", "description": "Does something.", "effect": "write", "key_fields": ["/sku"],
            "confirm": "always", "dry_run": "simulate", "recovery": {"reconcile": {"grace_seconds": 7}}, "deadline_ms": 5,
            "input": {"type": "object", "additionalProperties": False, "required": ["sku"], "properties": properties},
        })

    def test_lines_of_a_docstring_in_the_other_style(self):
        @tool("t.rest", effect="read")
        def rest(sku: str): """Reads.

            :param sku: The item.
            """
        self.assertEqual(sdk.TOOLS.pop("t.rest").schema["properties"]["sku"]["description"], "The item.")

    def test_mistakes_are_found_at_once(self):
        def silent(): pass
        def told(): "Text."
        for name, function, settings in [("t.silent", silent, {}), ("t.key", told, {"key": ["none"]})]:
            with self.assertRaises(TypeError):
                tool(name, **settings)(function)
        self.assertIs(tool("t.twice")(told), told, "the function stays as it was")
        with self.assertRaises(TypeError):
            tool("t.twice")(told)
        del sdk.TOOLS["t.twice"]


class Identity(unittest.TestCase):
    def test_the_token_is_good_for_one_request_only(self):
        page = (ROOT / "docs/http-tool.md").read_text()
        shown = {}
        exec(page.split("```python\n")[1].split("```")[0], shown)
        good = ("svc", "t.write", "call", "k_1", b'{"n": 1}')
        cases = [(sign(), good, True)]
        for at, other in enumerate(("other", "t.other", "reconcile", "k_2", b'{"n": 2}')):
            cases.append((sign(), (*good[:at], other, *good[at + 1:]), False))
        cases.append((sign(), (*good[:3], None, good[4]), False))
        head, payload, mac = sign().split(".")
        none = sign(alg="none").split(".")
        for token in (sign(b"another secret of thirty-two byte"), sign(alg="none"), sign(alg="HS512"), sign(exp=int(time.time()) - 1),
                      sign(exp="later"), sign(iss="me"), sign(idempotency_key=None), sign(purpose="dry_run"), sign(purpose=None),
                      f"{head}.{payload}.", f"{none[0]}.{none[1]}.", f"{head}.{payload}", "", "a.b.c", f"{head}.{payload}.{mac}.x",
                      f"{head}.{payload}x.{mac}", "[1]..", f"{head}.{payload}.{mac[:-1]}é"):
            cases.append((token, good, False))
        for token, request, is_good in cases:
            with self.subTest(token=token, request=request):
                claims = sdk.verify(token, SECRET, *request)
                self.assertEqual(claims is not None, is_good)
                try:
                    by_page = shown["caller"](token, SECRET, *request) is not None
                except (KeyError, TypeError, ValueError):
                    by_page = False
                self.assertEqual(by_page, is_good, "the function of the page agrees")

    def test_a_short_secret_is_refused(self):
        import os
        os.environ["SHORT_IDENTITY_SECRET"] = "short"
        with self.assertRaisesRegex(ValueError, "it needs 32 or more"):
            sdk.asgi("short")


class Broken(Exception):
    status_code, detail = 404, "no such thing"


class Late(Exception):
    pass


RAISED = {"code": ToolError("OUT_OF_STOCK", "two are left", "order two", {"left": 2}), "declared": Late("too late"),
          "http": Broken(), "timeout": TimeoutError("secret text"), "bug": KeyError("secret text"),
          "safe": ToolError("UPSTREAM_ERROR", "the bank is closed", retry_safe=True)}


@tool("t.write", dry_run=True, errors={Late: "CONFLICT"}, reconcile=lambda n, ctx: {1: happened(7), 2: DID_NOT_HAPPEN}.get(n))
def write(ctx: Context, n: int = 1, fail: typing.Optional[str] = None):
    """Writes."""
    assert current() is ctx
    if fail:
        raise RAISED[fail]
    return {"n": n, "user": ctx.user, "key": ctx.key, "dry": ctx.dry_run, "price": Decimal("1.10"), "line": Line("a")}


@tool("t.read", effect="read")
async def read(items: typing.List[int]):
    """Reads."""
    await asyncio.sleep(0)
    return items if items else object()


@tool("t.plain")
def plain():
    """Cannot simulate."""


def ask(path, body=b"{}", secret=b"", **headers):
    headers = {name.replace("_", "-"): value for name, value in {"idempotency_key": "k_1", **headers}.items() if value}
    status, answer = asyncio.run(sdk._answer("svc", secret, path, headers, body))
    return status, json.loads(answer)


class Answers(unittest.TestCase):
    def setUp(self):
        logging.getLogger("countersign_tool").setLevel(logging.CRITICAL)

    def test_what_is_answered(self):
        def error(status, code, message, **members):
            return status, {"error": {"code": code, "message": message, **members}}
        written = {"n": 1, "user": None, "key": "k_1", "dry": False, "price": "1.10", "line": {"sku": "a", "quantity": 1}}
        no_key = "no Idempotency-Key, or a dry run of a tool that cannot simulate"
        past = {"countersign_deadline": "2020-01-01T00:00:00Z", "body": b"{}"}
        for path, given, expected in [
            ("/tools/t.write", {}, (200, written)),
            ("/base/tools/t.write", {"body": b'{"n": 5}'}, (200, {**written, "n": 5})),
            ("/tools/t.write", {"idempotency_key": "", "countersign_dry_run": "true"}, (200, {**written, "key": None, "dry": True})),
            ("/tools/t.write", {"idempotency_key": ""}, error(400, "INVALID_ARGUMENT", no_key)),
            ("/tools/t.plain", {"countersign_dry_run": "true"}, error(400, "INVALID_ARGUMENT", no_key)),
            ("/tools/t.plain", {}, (200, None)),
            ("/tools/t.none", {}, error(404, "NOT_FOUND", "there is no such tool here")),
            ("/tools/t.plain/reconcile", {}, error(404, "NOT_FOUND", "there is no such tool here")),
            ("/tools/t.write/other", {}, error(404, "NOT_FOUND", "there is no such tool here")),
            ("/tools/t.write", past, error(504, "TIMEOUT", "the deadline has passed; nothing was changed", retry_safe=True)),
            ("/tools/t.write/reconcile", {"body": b'{"n": 1}'}, (200, {"outcome": "happened", "data": 7})),
            ("/tools/t.write/reconcile", {"body": b'{"n": 2}'}, (200, {"outcome": "did_not_happen"})),
            ("/tools/t.write/reconcile", {"body": b'{"n": 3}'}, (200, {"outcome": "unknown"})),
            ("/tools/t.read", {"body": b'{"items": [1]}', "idempotency_key": ""}, (200, [1])),
            ("/tools/t.read", {"body": b'{"items": []}'}, error(500, "UPSTREAM_ERROR", "the tool failed; its log says why")),
            ("/tools/t.read", {}, error(400, "INVALID_ARGUMENT", "items is missing, unknown or not valid")),
            ("/tools/t.write", {"body": b'{"m": 1}'}, error(400, "INVALID_ARGUMENT", "m is missing, unknown or not valid")),
            ("/tools/t.write", {"body": b'{"n": 1e9999999}'}, error(400, "INVALID_ARGUMENT", "n is missing, unknown or not valid")),
            ("/tools/t.write", {"body": b'{"n": 50e-1}'}, (200, {**written, "n": 5})),
            ("/tools/t.write", {"body": b"[]"}, error(400, "INVALID_ARGUMENT", "the body is missing, unknown or not valid")),
            ("/tools/t.write", {"body": b"\xff"}, error(400, "INVALID_ARGUMENT", "the body is missing, unknown or not valid")),
            ("/tools/t.write", {"body": b"[" * 100_000}, error(400, "INVALID_ARGUMENT", "the body is missing, unknown or not valid")),
        ]:
            with self.subTest(path=path, given=given):
                self.assertEqual(ask(path, **given), expected)

    def test_an_exception_is_a_code_and_no_text_leaks(self):
        failed = "the tool failed; its log says why"
        for raised, status, body in [
            ("code", 409, {"error": {"code": "OUT_OF_STOCK", "message": "two are left", "hint": "order two", "details": {"left": 2}}}),
            ("declared", 409, {"error": {"code": "CONFLICT", "message": "too late"}}),
            ("http", 404, {"detail": "no such thing"}),
            ("timeout", 500, {"error": {"code": "TIMEOUT", "message": failed}}),
            ("bug", 500, {"error": {"code": "UPSTREAM_ERROR", "message": failed}}),
            ("safe", 502, {"error": {"code": "UPSTREAM_ERROR", "message": "the bank is closed", "retry_safe": True}}),
        ]:
            with self.subTest(raised=raised):
                self.assertEqual(ask("/tools/t.write", json.dumps({"fail": raised}).encode()), (status, body))

    def test_with_a_secret_only_the_verified_are_answered(self):
        body = b'{"n": 1}'
        status, answer = ask("/tools/t.write", body, SECRET, countersign_identity=sign())
        self.assertEqual((status, answer["user"]), (200, "corp::ann"))
        refused = (401, {"message": "Countersign-Identity was refused"})
        for path, changes in [("/tools/t.write", {"idempotency_key": "k_2"}), ("/tools/t.write", {"countersign_dry_run": "true"}),
                              ("/tools/t.write/reconcile", {}), ("/tools/t.read", {}), ("/tools/t.none", {})]:
            self.assertEqual(ask(path, body, SECRET, countersign_identity=sign(), **changes), refused)
        self.assertEqual(ask("/tools/t.write", body, SECRET), refused)
        self.assertEqual(ask("/tools/t.write", b'{"n": 2}', SECRET, countersign_identity=sign()), refused)


class Help(unittest.TestCase):
    def test_help_is_printed_and_nothing_is_served(self):
        for word in ("-h", "--help"):
            script = "import countersign_tool as sdk; sdk.serve('orders')"
            ran = subprocess.run([sys.executable, "-c", script, word], cwd=pathlib.Path(sdk.__file__).parent, capture_output=True, text=True, timeout=60)
            self.assertEqual((ran.returncode, ran.stdout.strip()), (0, sdk.serve.__doc__), ran.stderr)


class Promises(unittest.TestCase):
    def test_the_codes_are_those_of_the_contract(self):
        contract = json.loads((ROOT / "contracts/error-codes.json").read_text())
        self.assertEqual(sdk.STATUSES, {code["code"]: code["http_status"] for code in contract})

    def test_it_is_one_file_of_300_lines_with_the_standard_library_only(self):
        text = pathlib.Path(sdk.__file__).read_text()
        self.assertLessEqual(len(text.splitlines()), 300)
        names = {alias.name.split(".")[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module.split(".")[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
        self.assertGreater(len(names), 10)
        if hasattr(sys, "stdlib_module_names"):
            self.assertEqual(names - set(sys.stdlib_module_names), set())

    def test_the_governed_service_has_ten_lines_more(self):
        lines = {}
        for name in ("bare_fastapi", "governed_fastapi"):
            text = (ROOT / f"examples/python/{name}.py").read_text().split('"""', 2)[2]
            lines[name] = [line for line in text.splitlines() if line.strip()]
        added = [line for line in lines["governed_fastapi"] if line not in lines["bare_fastapi"]]
        self.assertTrue(0 < len(added) <= 10, added)
        changed = [line for line in lines["bare_fastapi"] if line not in lines["governed_fastapi"]]
        self.assertLessEqual(len(changed), 1, changed)


if __name__ == "__main__":
    unittest.main()
