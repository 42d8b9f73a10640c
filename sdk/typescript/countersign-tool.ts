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
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

const STATUSES = {
  INVALID_ARGUMENT: 400, UNAUTHORIZED: 401, FORBIDDEN: 403, NOT_FOUND: 404, CONFLICT: 409, RATE_LIMITED: 429, TIMEOUT: 504,
  UPSTREAM_ERROR: 502, NEEDS_USER_CONFIRMATION: 428, COMPLIANCE_BLOCKED: 451, PRICE_CHANGED: 409, OUT_OF_STOCK: 409,
  ADDRESS_INVALID: 422,
};
const BODY_BYTES_MAX = 16 * 1024 * 1024;

/** One of the thirteen codes. */
export type Code = keyof typeof STATUSES;
type Members = { [name: string]: unknown };

/**
 * An error for the caller. Every code but `TIMEOUT` and `UPSTREAM_ERROR` says that nothing was changed; with those two,
 * `retry_safe: true` says so.
 */
export class ToolError extends Error {
  readonly status: number;
  readonly body: object;
  constructor(code: Code, message: string, members: { hint?: string; details?: object; retry_safe?: boolean } & Members = {}) {
    super(message);
    this.status = STATUSES[code] ?? 502;
    this.body = { error: { code, message, ...members } };
  }
}

/** The call. */
export interface Context {
  readonly tool: string;
  /** The same for every attempt of one call, another for every other call. Missing for a read and a dry run. */
  readonly key?: string;
  /** The answer is not used after it; `signal` is aborted then, for instance for `fetch`. */
  readonly deadline?: Date;
  readonly signal: AbortSignal;
  /** Answer as if, change nothing. */
  readonly dryRun: boolean;
  readonly requestId?: string;
  readonly traceparent?: string;
  /** Verified. Missing if there is no identity secret. */
  readonly user?: string;
  readonly realm?: string;
  readonly actor?: { type: "agent" | "user" | "system"; id: string };
}

/** An answer of a reconcile function; any other means that it does not know. */
export type Outcome = { outcome: "happened"; data: unknown } | { outcome: "did_not_happen" } | { outcome: "unknown" };
export const DID_NOT_HAPPEN: Outcome = { outcome: "did_not_happen" };
export const happened = (data: unknown): Outcome => ({ outcome: "happened", data });

/** The kind of an argument: its JSON Schema, and the function that makes a value of it from a JSON value. */
export interface Kind<T> {
  readonly schema: Members;
  readonly make: (value: unknown) => T;
  readonly isOptional?: boolean;
}
type Parameters = { [name: string]: Kind<any> };
/** The arguments that declared parameters make. */
export type Arguments<P extends Parameters> = { [N in keyof P]: P[N] extends Kind<infer T> ? T : never };

function kind<T>(schema: Members, text: string | undefined, more: Members | undefined, make: (value: any) => T): Kind<T> {
  return { schema: { ...schema, ...(text ? { description: text } : {}), ...more }, make };
}
function is<T>(isGood: boolean, value: T): T {
  if (!isGood) throw new TypeError("not valid");
  return value;
}
const isObject = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);

/** Kinds of arguments, each with a description and further keywords of JSON Schema, `default` among them. */
export const t = {
  string: (text?: string, more?: Members) => kind({ type: "string" }, text, more, (it): string => is(typeof it === "string", it)),
  boolean: (text?: string, more?: Members) =>
    kind({ type: "boolean" }, text, more, (it): boolean => is(typeof it === "boolean", it)),
  integer: (text?: string, more?: Members) => kind({ type: "integer" }, text, more, (it): number => is(Number.isInteger(it), it)),
  number: (text?: string, more?: Members) => kind({ type: "number" }, text, more, (it): number => is(typeof it === "number", it)),
  /** A decimal number as a string, so that no digit is lost. */
  decimal: (text?: string, more?: Members) =>
    kind({ type: "string", pattern: "^-?[0-9]+([.][0-9]+)?$" }, text, more, (it): string => is(typeof it === "string", it)),
  timestamp: (text?: string, more?: Members) => kind({ type: "string", format: "date-time", "x-kind": "timestamp" }, text, more,
    (it): Date => is(typeof it === "string" && !Number.isNaN(Date.parse(it)), new Date(it))),
  oneOf: <const V extends readonly (string | number)[]>(values: V, text?: string, more?: Members) =>
    kind({ ...(values.every((it) => typeof it === "string") && { type: "string" }), enum: values }, text, more, (it): V[number] => is(values.includes(it), it)),
  list: <T>(of: Kind<T>, text?: string, more?: Members) =>
    kind({ type: "array", items: of.schema }, text, more, (it): T[] => is(Array.isArray(it), it).map(of.make)),
  map: <T>(of: Kind<T>, text?: string, more?: Members) => kind({ type: "object", additionalProperties: of.schema }, text, more,
    (it): { [at: string]: T } => Object.fromEntries(Object.entries(is(isObject(it), it)).map(([at, item]) => [at, of.make(item)]))),
  object: <P extends Parameters>(members: P, text?: string, more?: Members) =>
    kind(objectSchema(members), text, more, (it) => argumentsOf(members, it)),
  any: (text?: string, more?: Members) => kind({}, text, more, (it): unknown => it),
  optional: <T>(of: Kind<T>): Kind<T | undefined> => ({ ...of, isOptional: true }),
};

function objectSchema(members: Parameters): Members {
  const required = Object.keys(members).filter((at) => !members[at]!.isOptional && !("default" in members[at]!.schema));
  const properties = Object.fromEntries(Object.entries(members).map(([at, own]) => [at, own.schema]));
  return { type: "object", additionalProperties: false, required, properties };
}

function argumentsOf<P extends Parameters>(members: P, given: unknown): Arguments<P> {
  const unknown = isObject(given) ? Object.keys(given).find((at) => !Object.hasOwn(members, at)) : "the body";
  const made = Object.entries(members).map(([at, { schema, make, isOptional }]) => {
    const value = (given as Members)?.[at] ?? schema["default"];
    try {
      return [at, value === undefined && isOptional ? undefined : make(value)];
    } catch {
      throw new ToolError("INVALID_ARGUMENT", `${at} is missing or not valid`);
    }
  });
  if (unknown !== undefined) throw new ToolError("INVALID_ARGUMENT", `${unknown} is unknown or not valid`);
  return Object.fromEntries(made);
}

/** What is said about a tool. */
export interface Options<P extends Parameters> {
  description: string;
  parameters: P;
  /** `write` if it is left out. */
  effect?: "read" | "write";
  /** Names of the arguments that make two calls one call, or `"required"`. */
  key?: (keyof P & string)[] | "required" | "derive";
  /** `true`, or terms. */
  confirm?: true | object;
  /** True if the function honours `ctx.dryRun`. */
  dryRun?: true;
  /** Says what became of a call. */
  reconcile?: (args: Arguments<P>, ctx: Context) => Outcome | Promise<Outcome>;
  graceSeconds?: number;
  /** Classes of errors and their codes. */
  errors?: [new (...args: any[]) => Error, Code][];
  /** Other settings of `[[tool]]`. */
  settings?: Members;
}
interface Tool { options: Options<any>; run: (args: any, ctx: Context) => unknown; entry: Members }
const TOOLS = new Map<string, Tool>();

/** Makes a tool of a function and returns the function as it was. */
export function tool<P extends Parameters, R>(
  name: string, options: Options<P>, run: (args: Arguments<P>, ctx: Context) => R,
): (args: Arguments<P>, ctx: Context) => R {
  const { description, effect = "write", key, confirm, dryRun, reconcile, graceSeconds = 30, settings } = options;
  if (TOOLS.has(name)) throw new TypeError(`there are two tools ${name}`);
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
export function verify(
  token: string, secret: string, upstream: string, tool: string, purpose: string, key: string | undefined, body: Uint8Array,
): Members | undefined {
  const [head, payload, mac, ...rest] = token.split(".");
  if (!head || !payload || !mac || rest.length > 0) return undefined;
  try {
    const json = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
    const own = Buffer.from(createHmac("sha256", secret).update(`${head}.${payload}`).digest("base64url"));
    const given = Buffer.from(mac);
    if (json(head).alg !== "HS256" || own.length !== given.length || !timingSafeEqual(own, given)) return undefined;
    const claims = json(payload);
    const isGood = claims.iss === "countersign" && claims.aud === upstream && claims.exp > Date.now() / 1000
      && claims.tool === tool && claims.purpose === purpose && claims.idempotency_key === key
      && claims.body_sha256 === createHash("sha256").update(body).digest("hex");
    return isGood ? claims : undefined;
  } catch {
    return undefined;
  }
}

function secretOf(upstream: string): { variable: string; secret: string } {
  const variable = `${upstream.replace(/\W/g, "_").toUpperCase()}_IDENTITY_SECRET`;
  const secret = (process.env[variable] ?? "").trim();
  if (secret && Buffer.byteLength(secret) < 32) throw new Error(`${variable} needs 32 bytes or more`);
  return { variable, secret };
}

/** The status and the body of the answer to a POST. */
async function answer(
  upstream: string, secret: string, req: IncomingMessage, path: string, body: Buffer,
): Promise<[number, string]> {
  const header = (name: string) => req.headers[name] as string | undefined;
  const [name = "", twin = ""] = path.split("/tools/").pop()!.split("/");
  const [own, key, dryRun] = [TOOLS.get(name), header("idempotency-key"), header("countersign-dry-run") === "true"];
  try {
    const purpose = twin || (dryRun ? "dry_run" : "call");
    const claims: any = secret ? verify(header("countersign-identity") ?? "", secret, upstream, name, purpose, key, body) : {};
    if (!claims) return [401, '{"message": "Countersign-Identity was refused"}'];
    const run = twin === "reconcile" ? own?.options.reconcile : twin === "" ? own?.run : undefined;
    if (!own || !run) throw new ToolError("NOT_FOUND", "there is no such tool here");
    if (dryRun ? !own.options.dryRun : !key && own.entry["effect"] !== "read") {
      throw new ToolError("INVALID_ARGUMENT", "no Idempotency-Key, or a dry run of a tool that cannot simulate");
    }
    const deadline = header("countersign-deadline") ? new Date(header("countersign-deadline")!) : undefined;
    const left = deadline ? deadline.getTime() - Date.now() : 2 ** 31 - 1;
    if (!(left > 0)) throw new ToolError("TIMEOUT", "the deadline has passed; nothing was changed", { retry_safe: true });
    const ctx: Context = {
      tool: name, key, deadline, signal: AbortSignal.timeout(Math.min(left, 2 ** 31 - 1)), dryRun,
      requestId: header("x-request-id"), traceparent: header("traceparent"),
      user: claims.sub, realm: claims.realm, actor: claims.act,
    };
    const data: any = await run(argumentsOf(own.options.parameters, parsed(body)), ctx);
    return [200, JSON.stringify(twin && !data?.outcome ? { outcome: "unknown" } : data ?? null)];
  } catch (error: any) {
    const code = own?.options.errors?.find(([kind]) => error instanceof kind)?.[1];
    const told = code ? new ToolError(code, error.message) : error;
    if (told instanceof ToolError) return [told.status, JSON.stringify(told.body)];
    // An error of http-errors, whose text is meant for callers.
    if (told?.expose === true && told.status >= 400) return [told.status, JSON.stringify({ message: told.message })];
    console.error(`the tool ${name} failed in ${header("x-request-id")}`, error);
    const kind = error?.name === "TimeoutError" || error?.name === "AbortError" ? "TIMEOUT" : "UPSTREAM_ERROR";
    return [500, JSON.stringify(new ToolError(kind, "the tool failed; its log says why").body)];
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

/** Serves the tools: `app.use(tools("orders"))`, before `express.json()`, or `http.createServer(tools("orders"))`. */
export function tools(upstream: string) {
  const { variable, secret } = secretOf(upstream);
  if (!secret) console.warn(`${variable} is not set: callers are not verified`);
  return async (req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void): Promise<void> => {
    const path = ((req as any).originalUrl ?? req.url ?? "").split("?")[0];
    if (!path.includes("/tools/") || req.method !== "POST") {
      if (next) return next();
      res.writeHead(404).end();
      return;
    }
    if (req.readableDidRead) return next?.(new Error("mount tools() before express.json(): it checks the bytes that were sent"));
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of req) {
        size += chunk.length;
        if (size > BODY_BYTES_MAX) return void res.writeHead(413, { connection: "close" }).end();
        chunks.push(chunk);
      }
    } catch {
      return void res.destroy(); // the caller is gone before the request was complete
    }
    const [status, text] = await answer(upstream, secret, req, path, Buffer.concat(chunks));
    res.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text);
  };
}

/** The entries of the tools, for countersign.toml. */
export function configuration(upstream: string, baseUrl: string): string {
  const { variable, secret } = secretOf(upstream);
  const key = (at: string) => (/^[\w-]+$/.test(at) ? at : JSON.stringify(at));
  const members = (value: Members) => Object.entries(value).map(([at, item]) => `${key(at)} = ${text(item)}`).join(", ");
  const text = (value: unknown): string => Array.isArray(value) ? `[${value.map(text).join(", ")}]`
    : isObject(value) ? `{${members(value)}}` : JSON.stringify(value);
  const lines = (path: string[], value: unknown): string[] => isObject(value) && Object.keys(value).length > 0 && path.length < 3
    ? Object.entries(value).flatMap(([at, item]) => lines([...path, key(at)], item)) : [`${path.join(".")} = ${text(value)}`];
  const made = ["[[upstream]]", ...lines([], { name: upstream, base_url: baseUrl, allow_private: ["loopback"] }),
    `${secret ? "" : "# "}identity_secret = "env:${variable}"  # the same in both processes`];
  for (const { entry } of TOOLS.values()) made.push("", "[[tool]]", ...lines([], { ...entry, upstream }));
  return made.join("\n") + "\n";
}

/** `node app.js` serves the tools; `node app.js --countersign` prints their configuration. */
export function serve(upstream: string, { host = "127.0.0.1", port = Number(process.env["PORT"] ?? 9000) } = {}) {
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
  const server = createServer({ keepAliveTimeout: 60_000 }, tools(upstream));
  return server.listen(port, host, () => console.log(`${upstream}: http://${host}:${(server.address() as { port: number }).port}`));
}
