"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.t = exports.happened = exports.DID_NOT_HAPPEN = exports.ToolError = void 0;
exports.tool = tool;
exports.verify = verify;
exports.tools = tools;
exports.configuration = configuration;
exports.serve = serve;
/**
 * TypeScript functions as tools behind Countersign: one file, no dependencies, Node 18 or newer. Copy it, or
 * `npm install ./sdk/typescript`. The contract on the wire is docs/http-tool.md of the project.
 *
 *     import { serve, t, tool } from "countersign-tool";
 *
 *     tool("orders.place", {
 *       description: "Places an order for an item.",
 *       parameters: { sku: t.string("Stock keeping unit."), quantity: t.integer("How many.", { minimum: 1, default: 1 }) },
 *     }, async ({ sku, quantity }, ctx) => ({ sku, quantity }));
 *
 *     serve("orders");   // `node app.js` serves it, `node app.js --countersign` prints its configuration
 */
const node_crypto_1 = require("node:crypto");
const node_http_1 = require("node:http");
const STATUSES = {
    INVALID_ARGUMENT: 400, UNAUTHORIZED: 401, FORBIDDEN: 403, NOT_FOUND: 404, CONFLICT: 409, RATE_LIMITED: 429, TIMEOUT: 504,
    UPSTREAM_ERROR: 502, NEEDS_USER_CONFIRMATION: 428, COMPLIANCE_BLOCKED: 451, PRICE_CHANGED: 409, OUT_OF_STOCK: 409,
    ADDRESS_INVALID: 422,
};
const BODY_BYTES_MAX = 16 * 1024 * 1024;
/**
 * An error for the caller. Every code but `TIMEOUT` and `UPSTREAM_ERROR` says that nothing was changed; with those two,
 * `retry_safe: true` says so.
 */
class ToolError extends Error {
    status;
    body;
    constructor(code, message, members = {}) {
        super(message);
        this.status = STATUSES[code] ?? 502;
        this.body = { error: { code, message, ...members } };
    }
}
exports.ToolError = ToolError;
exports.DID_NOT_HAPPEN = { outcome: "did_not_happen" };
const happened = (data) => ({ outcome: "happened", data });
exports.happened = happened;
function kind(schema, text, more, make) {
    return { schema: { ...schema, ...(text ? { description: text } : {}), ...more }, make };
}
function is(isGood, value) {
    if (!isGood)
        throw new TypeError("not valid");
    return value;
}
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** Kinds of arguments, each with a description and further keywords of JSON Schema, `default` among them. */
exports.t = {
    string: (text, more) => kind({ type: "string" }, text, more, (it) => is(typeof it === "string", it)),
    boolean: (text, more) => kind({ type: "boolean" }, text, more, (it) => is(typeof it === "boolean", it)),
    integer: (text, more) => kind({ type: "integer" }, text, more, (it) => is(Number.isInteger(it), it)),
    number: (text, more) => kind({ type: "number" }, text, more, (it) => is(typeof it === "number", it)),
    /** A decimal number as a string, so that no digit is lost. */
    decimal: (text, more) => kind({ type: "string", pattern: "^-?[0-9]+([.][0-9]+)?$" }, text, more, (it) => is(typeof it === "string", it)),
    timestamp: (text, more) => kind({ type: "string", format: "date-time", "x-kind": "timestamp" }, text, more, (it) => is(typeof it === "string" && !Number.isNaN(Date.parse(it)), new Date(it))),
    oneOf: (values, text, more) => kind({ ...(values.every((it) => typeof it === "string") && { type: "string" }), enum: values }, text, more, (it) => is(values.includes(it), it)),
    list: (of, text, more) => kind({ type: "array", items: of.schema }, text, more, (it) => is(Array.isArray(it), it).map(of.make)),
    map: (of, text, more) => kind({ type: "object", additionalProperties: of.schema }, text, more, (it) => Object.fromEntries(Object.entries(is(isObject(it), it)).map(([at, item]) => [at, of.make(item)]))),
    object: (members, text, more) => kind(objectSchema(members), text, more, (it) => argumentsOf(members, it)),
    any: (text, more) => kind({}, text, more, (it) => it),
    optional: (of) => ({ ...of, isOptional: true }),
};
function objectSchema(members) {
    const required = Object.keys(members).filter((at) => !members[at].isOptional && !("default" in members[at].schema));
    const properties = Object.fromEntries(Object.entries(members).map(([at, own]) => [at, own.schema]));
    return { type: "object", additionalProperties: false, required, properties };
}
function argumentsOf(members, given) {
    const unknown = isObject(given) ? Object.keys(given).find((at) => !Object.hasOwn(members, at)) : "the body";
    const made = Object.entries(members).map(([at, { schema, make, isOptional }]) => {
        const value = given?.[at] ?? schema["default"];
        try {
            return [at, value === undefined && isOptional ? undefined : make(value)];
        }
        catch {
            throw new ToolError("INVALID_ARGUMENT", `${at} is missing or not valid`);
        }
    });
    if (unknown !== undefined)
        throw new ToolError("INVALID_ARGUMENT", `${unknown} is unknown or not valid`);
    return Object.fromEntries(made);
}
const TOOLS = new Map();
/** Makes a tool of a function and returns the function as it was. */
function tool(name, options, run) {
    const { description, effect = "write", key, confirm, dryRun, reconcile, graceSeconds = 30, settings } = options;
    if (TOOLS.has(name))
        throw new TypeError(`there are two tools ${name}`);
    const keyed = Array.isArray(key) ? { key_fields: key.map((at) => `/${at}`) } : key ? { key } : {};
    const entry = {
        name, upstream: "", description, effect, ...keyed,
        ...(confirm ? { confirm: confirm === true ? "always" : confirm } : {}), ...(dryRun ? { dry_run: "simulate" } : {}),
        ...(reconcile ? { recovery: { reconcile: { grace_seconds: graceSeconds } } } : {}),
        ...settings, input: objectSchema(options.parameters),
    };
    TOOLS.set(name, { options, run, entry });
    return run;
}
/** The claims of a `Countersign-Identity`, checked in the order of the page; undefined if a check fails. */
function verify(token, secret, upstream, tool, purpose, key, body) {
    const [head, payload, mac, ...rest] = token.split(".");
    if (!head || !payload || !mac || rest.length > 0)
        return undefined;
    try {
        const json = (part) => JSON.parse(Buffer.from(part, "base64url").toString());
        const own = Buffer.from((0, node_crypto_1.createHmac)("sha256", secret).update(`${head}.${payload}`).digest("base64url"));
        const given = Buffer.from(mac);
        if (json(head).alg !== "HS256" || own.length !== given.length || !(0, node_crypto_1.timingSafeEqual)(own, given))
            return undefined;
        const claims = json(payload);
        const isGood = claims.iss === "countersign" && claims.aud === upstream && claims.exp > Date.now() / 1000
            && claims.tool === tool && claims.purpose === purpose && claims.idempotency_key === key
            && claims.body_sha256 === (0, node_crypto_1.createHash)("sha256").update(body).digest("hex");
        return isGood ? claims : undefined;
    }
    catch {
        return undefined;
    }
}
function secretOf(upstream) {
    const variable = `${upstream.replace(/\W/g, "_").toUpperCase()}_IDENTITY_SECRET`;
    const secret = (process.env[variable] ?? "").trim();
    if (secret && Buffer.byteLength(secret) < 32)
        throw new Error(`${variable} needs 32 bytes or more`);
    return { variable, secret };
}
/** The status and the body of the answer to a POST. */
async function answer(upstream, secret, req, path, body) {
    const header = (name) => req.headers[name];
    const [name = "", twin = ""] = path.split("/tools/").pop().split("/");
    const [own, key, dryRun] = [TOOLS.get(name), header("idempotency-key"), header("countersign-dry-run") === "true"];
    try {
        const purpose = twin || (dryRun ? "dry_run" : "call");
        const claims = secret ? verify(header("countersign-identity") ?? "", secret, upstream, name, purpose, key, body) : {};
        if (!claims)
            return [401, '{"message": "Countersign-Identity was refused"}'];
        const run = twin === "reconcile" ? own?.options.reconcile : twin === "" ? own?.run : undefined;
        if (!own || !run)
            throw new ToolError("NOT_FOUND", "there is no such tool here");
        if (dryRun ? !own.options.dryRun : !key && own.entry["effect"] !== "read") {
            throw new ToolError("INVALID_ARGUMENT", "no Idempotency-Key, or a dry run of a tool that cannot simulate");
        }
        const deadline = header("countersign-deadline") ? new Date(header("countersign-deadline")) : undefined;
        const left = deadline ? deadline.getTime() - Date.now() : 2 ** 31 - 1;
        if (!(left > 0))
            throw new ToolError("TIMEOUT", "the deadline has passed; nothing was changed", { retry_safe: true });
        const ctx = {
            tool: name, key, deadline, signal: AbortSignal.timeout(Math.min(left, 2 ** 31 - 1)), dryRun,
            requestId: header("x-request-id"), traceparent: header("traceparent"),
            user: claims.sub, realm: claims.realm, actor: claims.act,
        };
        const data = await run(argumentsOf(own.options.parameters, parsed(body)), ctx);
        return [200, JSON.stringify(twin && !data?.outcome ? { outcome: "unknown" } : data ?? null)];
    }
    catch (error) {
        const code = own?.options.errors?.find(([kind]) => error instanceof kind)?.[1];
        const told = code ? new ToolError(code, error.message) : error;
        if (told instanceof ToolError)
            return [told.status, JSON.stringify(told.body)];
        // An error of http-errors, whose text is meant for callers.
        if (told?.expose === true && told.status >= 400)
            return [told.status, JSON.stringify({ message: told.message })];
        console.error(`the tool ${name} failed in ${header("x-request-id")}`, error);
        const kind = error?.name === "TimeoutError" || error?.name === "AbortError" ? "TIMEOUT" : "UPSTREAM_ERROR";
        return [500, JSON.stringify(new ToolError(kind, "the tool failed; its log says why").body)];
    }
}
function parsed(body) {
    try {
        return JSON.parse(body.toString());
    }
    catch {
        return undefined;
    }
}
/** Serves the tools: `app.use(tools("orders"))`, before `express.json()`, or `http.createServer(tools("orders"))`. */
function tools(upstream) {
    const { variable, secret } = secretOf(upstream);
    if (!secret)
        console.warn(`${variable} is not set: callers are not verified`);
    return async (req, res, next) => {
        const path = (req.originalUrl ?? req.url ?? "").split("?")[0];
        if (!path.includes("/tools/") || req.method !== "POST") {
            if (next)
                return next();
            res.writeHead(404).end();
            return;
        }
        if (req.readableDidRead)
            return next?.(new Error("mount tools() before express.json(): it checks the bytes that were sent"));
        const chunks = [];
        let size = 0;
        try {
            for await (const chunk of req) {
                size += chunk.length;
                if (size > BODY_BYTES_MAX)
                    return void res.writeHead(413, { connection: "close" }).end();
                chunks.push(chunk);
            }
        }
        catch {
            return void res.destroy(); // the caller is gone before the request was complete
        }
        const [status, text] = await answer(upstream, secret, req, path, Buffer.concat(chunks));
        res.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text);
    };
}
/** The entries of the tools, for countersign.toml. */
function configuration(upstream, baseUrl) {
    const { variable, secret } = secretOf(upstream);
    const key = (at) => (/^[\w-]+$/.test(at) ? at : JSON.stringify(at));
    const members = (value) => Object.entries(value).map(([at, item]) => `${key(at)} = ${text(item)}`).join(", ");
    const text = (value) => Array.isArray(value) ? `[${value.map(text).join(", ")}]`
        : isObject(value) ? `{${members(value)}}` : JSON.stringify(value);
    const lines = (path, value) => isObject(value) && Object.keys(value).length > 0 && path.length < 3
        ? Object.entries(value).flatMap(([at, item]) => lines([...path, key(at)], item)) : [`${path.join(".")} = ${text(value)}`];
    const made = ["[[upstream]]", ...lines([], { name: upstream, base_url: baseUrl, allow_private: ["loopback"] }),
        `${secret ? "" : "# "}identity_secret = "env:${variable}"  # the same in both processes`];
    for (const { entry } of TOOLS.values())
        made.push("", "[[tool]]", ...lines([], { ...entry, upstream }));
    return made.join("\n") + "\n";
}
/** `node app.js` serves the tools; `node app.js --countersign` prints their configuration. */
function serve(upstream, { host = "127.0.0.1", port = Number(process.env["PORT"] ?? 9000) } = {}) {
    const isAsked = process.argv.includes("--countersign");
    if (isAsked || process.argv.some((word) => word === "-h" || word === "--help")) {
        const help = "Serves the tools (PORT is the port [default: 9000]); with `--countersign` it prints their configuration instead.\n";
        process.stdout.write(isAsked ? configuration(upstream, `http://${host}:${port}`) : help);
        return undefined;
    }
    const { variable, secret } = secretOf(upstream);
    if (!secret && !["127.0.0.1", "::1", "localhost"].includes(host)) {
        throw new Error(`set ${variable} before other machines can call; without it no caller is verified`);
    }
    const server = (0, node_http_1.createServer)({ keepAliveTimeout: 60_000 }, tools(upstream));
    return server.listen(port, host, () => console.log(`${upstream}: http://${host}:${server.address().port}`));
}
