// Tests of countersign-tool.js, which is built from countersign-tool.ts: `node --test sdk/typescript`.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import * as sdk from "./countersign-tool.js";
const { DID_NOT_HAPPEN, ToolError, configuration, happened, t, tool, tools, verify } = sdk;

const SECRET = "0123456789abcdef0123456789abcdef";
const file = (name) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");

function sign(changes = {}, secret = SECRET, alg = "HS256", body = '{"n": 1}') {
  const claims = {
    iss: "countersign", aud: "svc", sub: "corp::ann", realm: "corp", act: { type: "agent", id: "a_1" }, tool: "t.write",
    purpose: "call", request_id: "req_1", idempotency_key: "k_1", iat: 1, exp: Math.floor(Date.now() / 1000) + 60,
    body_sha256: createHash("sha256").update(body).digest("hex"), ...changes,
  };
  const b64 = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${b64({ alg, typ: "JWT" })}.${b64(claims)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

test("a kind is a schema and makes values", () => {
  const moment = new Date("2026-01-02T03:04:05.600Z");
  const text = { type: "string" };
  for (const [kind, schema, given, expected] of [
    [t.string("Text.", { maxLength: 3 }), { type: "string", description: "Text.", maxLength: 3 }, "a", "a"],
    [t.integer(), { type: "integer" }, 2, 2],
    [t.number(), { type: "number" }, 1.5, 1.5],
    [t.boolean(), { type: "boolean" }, false, false],
    [t.decimal(), { type: "string", pattern: "^-?[0-9]+([.][0-9]+)?$" }, "1.10", "1.10"],
    [t.timestamp(), { type: "string", format: "date-time", "x-kind": "timestamp" }, "2026-01-02T03:04:05.6Z", moment],
    [t.oneOf(["a", 1]), { enum: ["a", 1] }, 1, 1],
    [t.oneOf(["a", "b"]), { type: "string", enum: ["a", "b"] }, "a", "a"],
    [t.list(t.integer()), { type: "array", items: { type: "integer" } }, [1], [1]],
    [t.map(t.integer()), { type: "object", additionalProperties: { type: "integer" } }, { a: 1 }, { a: 1 }],
    [t.object({ sku: t.string(), n: t.integer("", { default: 1 }), note: t.optional(t.string()) }),
      { type: "object", additionalProperties: false, required: ["sku"],
        properties: { sku: text, n: { type: "integer", default: 1 }, note: text } },
      { sku: "a" }, { sku: "a", n: 1, note: undefined }],
    [t.any(), {}, [null], [null]],
  ]) {
    assert.deepEqual(kind.schema, schema);
    assert.deepEqual(kind.make(given), expected);
  }
});

test("what does not fit is refused", () => {
  for (const [kind, given] of [
    [t.string(), 1], [t.integer(), 1.5], [t.integer(), "1"], [t.number(), "1"], [t.boolean(), 1], [t.timestamp(), "soon"],
    [t.oneOf(["a"]), "b"], [t.list(t.string()), {}], [t.list(t.string()), [1]], [t.map(t.string()), []],
    [t.object({ sku: t.string() }), {}], [t.object({ sku: t.string() }), { sku: "a", x: 1 }], [t.object({}), []],
  ]) assert.throws(() => kind.make(given), JSON.stringify(given));
});

test("the token is good for one request only", () => {
  const good = ["svc", "t.write", "call", "k_1", Buffer.from('{"n": 1}')];
  assert.equal(verify(sign(), SECRET, ...good).sub, "corp::ann");
  ["other", "t.other", "reconcile", "k_2", Buffer.from('{"n": 2}')].forEach((other, at) => {
    assert.equal(verify(sign(), SECRET, ...good.with?.(at, other) ?? Object.assign([...good], { [at]: other })), undefined);
  });
  const [head, payload, mac] = sign().split(".");
  const past = Math.floor(Date.now() / 1000) - 1;
  for (const token of [
    sign({}, "another secret of thirty-two byte"), sign({}, SECRET, "none"), sign({}, SECRET, "HS512"), sign({ exp: past }),
    sign({ exp: "later" }), sign({ iss: "me" }), sign({ idempotency_key: undefined }), sign({ purpose: "dry_run" }),
    `${head}.${payload}.`, `${head}.${payload}`, "", "a.b.c", `${head}.${payload}.${mac}.x`, `${head}.${payload}x.${mac}`,
    `${head}.${payload}.${mac.slice(0, -1)}é`,
  ]) assert.equal(verify(token, SECRET, ...good), undefined, token);
});

class Late extends Error {}
const RAISED = {
  code: new ToolError("OUT_OF_STOCK", "two are left", { hint: "order two", details: { left: 2 } }),
  declared: new Late("too late"),
  http: Object.assign(new Error("no such thing"), { status: 404, expose: true }),
  hidden: Object.assign(new Error("secret text"), { status: 500, expose: false }),
  timeout: Object.assign(new Error("secret text"), { name: "TimeoutError" }),
  bug: new TypeError("secret text"),
  safe: new ToolError("UPSTREAM_ERROR", "the bank is closed", { retry_safe: true }),
};

const write = (args, ctx) => {
  if (args.fail) throw RAISED[args.fail];
  return { n: args.n, user: ctx.user, key: ctx.key, dry: ctx.dryRun };
};
tool("t.write", {
  description: "Writes.", dryRun: true, errors: [[Late, "CONFLICT"]], key: ["n"], confirm: true, graceSeconds: 7,
  settings: { deadline_ms: 5 },
  parameters: { n: t.integer("How many.", { default: 1 }), fail: t.optional(t.string()) },
  reconcile: ({ n }) => ({ 1: happened(7), 2: DID_NOT_HAPPEN })[n],
}, write);
tool("t.read", { description: "Reads.", effect: "read", parameters: { items: t.list(t.integer()) } }, async ({ items }) => items[0] ?? 1n);
tool("t.plain", { description: "Cannot simulate.", parameters: {} }, () => undefined);

async function asked(upstream, requests) {
  const server = createServer(tools(upstream)).listen(0, "127.0.0.1");
  await new Promise((ready) => server.once("listening", ready));
  const answers = [];
  for (const [path, { body = "{}", key = "k_1", ...headers } = {}] of requests) {
    const sent = { ...(key ? { "idempotency-key": key } : {}), ...headers };
    const answer = await fetch(`http://127.0.0.1:${server.address().port}${path}`, { method: "POST", body, headers: sent });
    answers.push([answer.status, await answer.json()]);
  }
  server.close();
  server.closeAllConnections?.();
  return answers;
}

test("what is answered", async (context) => {
  context.mock.method(console, "error", () => {});
  const error = (status, code, message, more) => [status, { error: { code, message, ...more } }];
  const written = { n: 1, key: "k_1", dry: false };
  const noKey = "no Idempotency-Key, or a dry run of a tool that cannot simulate";
  const failed = "the tool failed; its log says why";
  const fail = (raised) => ["/tools/t.write", { body: JSON.stringify({ fail: raised }) }];
  const cases = [
    [["/tools/t.write"], [200, written]],
    [["/base/tools/t.write?x=1", { body: '{"n": 5}' }], [200, { ...written, n: 5 }]],
    [["/tools/t.write", { key: "", "countersign-dry-run": "true" }], [200, { n: 1, dry: true }]],
    [["/tools/t.write", { key: "" }], error(400, "INVALID_ARGUMENT", noKey)],
    [["/tools/t.plain", { "countersign-dry-run": "true" }], error(400, "INVALID_ARGUMENT", noKey)],
    [["/tools/t.plain"], [200, null]],
    [["/tools/t.none"], error(404, "NOT_FOUND", "there is no such tool here")],
    [["/tools/t.plain/reconcile"], error(404, "NOT_FOUND", "there is no such tool here")],
    [["/tools/t.write", { "countersign-deadline": "2020-01-01T00:00:00Z" }],
      error(504, "TIMEOUT", "the deadline has passed; nothing was changed", { retry_safe: true })],
    [["/tools/t.write/reconcile"], [200, { outcome: "happened", data: 7 }]],
    [["/tools/t.write/reconcile", { body: '{"n": 2}' }], [200, { outcome: "did_not_happen" }]],
    [["/tools/t.write/reconcile", { body: '{"n": 3}' }], [200, { outcome: "unknown" }]],
    [["/tools/t.read", { body: '{"items": [4]}', key: "" }], [200, 4]],
    [["/tools/t.read", { body: '{"items": []}' }], error(500, "UPSTREAM_ERROR", failed)],
    [["/tools/t.read"], error(400, "INVALID_ARGUMENT", "items is missing or not valid")],
    [["/tools/t.write", { body: '{"m": 1}' }], error(400, "INVALID_ARGUMENT", "m is unknown or not valid")],
    [["/tools/t.write", { body: "[]" }], error(400, "INVALID_ARGUMENT", "the body is unknown or not valid")],
    [["/tools/t.write", { body: "{" }], error(400, "INVALID_ARGUMENT", "the body is unknown or not valid")],
    [fail("code"), error(409, "OUT_OF_STOCK", "two are left", { hint: "order two", details: { left: 2 } })],
    [fail("declared"), error(409, "CONFLICT", "too late")],
    [fail("http"), [404, { message: "no such thing" }]],
    [fail("hidden"), error(500, "UPSTREAM_ERROR", failed)],
    [fail("timeout"), error(500, "TIMEOUT", failed)],
    [fail("bug"), error(500, "UPSTREAM_ERROR", failed)],
    [fail("safe"), error(502, "UPSTREAM_ERROR", "the bank is closed", { retry_safe: true })],
  ];
  const answers = await asked("open", cases.map(([request]) => request));
  cases.forEach(([request, expected], at) => assert.deepEqual(answers[at], expected, JSON.stringify(request)));
});

test("with a secret only the verified are answered", async () => {
  process.env.SVC_IDENTITY_SECRET = `${SECRET}\n`;
  const body = '{"n": 1}';
  const identity = { "countersign-identity": sign(), body };
  const answers = await asked("svc", [
    ["/tools/t.write", identity],
    ["/tools/t.write", { body }],
    ["/tools/t.write", { ...identity, body: '{"n": 2}' }],
    ["/tools/t.write", { ...identity, key: "k_2" }],
    ["/tools/t.write", { ...identity, "countersign-dry-run": "true" }],
    ["/tools/t.write/reconcile", identity],
    ["/tools/t.none", identity],
  ]);
  assert.deepEqual(answers[0], [200, { n: 1, user: "corp::ann", key: "k_1", dry: false }]);
  assert.deepEqual(answers.slice(1), Array(6).fill([401, { message: "Countersign-Identity was refused" }]));
  process.env.SHORT_IDENTITY_SECRET = "short";
  assert.throws(() => tools("short"), /needs 32 bytes or more/);
});

test("a tool makes an entry", () => {
  const shown = configuration("open", "http://127.0.0.1:9000").split("\n\n");
  assert.deepEqual(shown.slice(0, 2), [`[[upstream]]
name = "open"
base_url = "http://127.0.0.1:9000"
allow_private = ["loopback"]
# identity_secret = "env:OPEN_IDENTITY_SECRET"  # the same in both processes`, `[[tool]]
name = "t.write"
upstream = "open"
description = "Writes."
effect = "write"
key_fields = ["/n"]
confirm = "always"
dry_run = "simulate"
recovery.reconcile.grace_seconds = 7
deadline_ms = 5
input.type = "object"
input.additionalProperties = false
input.required = []
input.properties.n = {type = "integer", description = "How many.", default = 1}
input.properties.fail = {type = "string"}`]);
  assert.throws(() => tool("t.write", { description: "Again.", parameters: {} }, write), /there are two tools t.write/);
});

test("it is one file of 300 lines without dependencies", () => {
  const text = file("sdk/typescript/countersign-tool.ts");
  assert.ok(text.split("\n").length <= 301);
  const imported = [...text.matchAll(/^import .* from "(.*)";$/gm)].map((found) => found[1]);
  assert.deepEqual(imported, ["node:crypto", "node:http"]);
  assert.equal(JSON.parse(file("sdk/typescript/package.json")).dependencies, undefined);
  const codes = JSON.parse(file("contracts/error-codes.json"));
  for (const { code, http_status } of codes) assert.equal(new ToolError(code, "").status, http_status, code);
});

test("the governed service has ten lines more", () => {
  const lines = (name) => file(`examples/typescript/${name}.ts`).split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("//"));
  const [bare, governed] = [lines("bare-express"), lines("governed-express")];
  const added = governed.filter((line) => !bare.includes(line));
  assert.ok(added.length > 0 && governed.length - bare.length <= 10, added.join("\n"));
  assert.deepEqual(bare.filter((line) => !governed.includes(line)), []);
});
