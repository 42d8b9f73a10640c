import { type IncomingMessage, type ServerResponse } from "node:http";
declare const STATUSES: {
    INVALID_ARGUMENT: number;
    UNAUTHORIZED: number;
    FORBIDDEN: number;
    NOT_FOUND: number;
    CONFLICT: number;
    RATE_LIMITED: number;
    TIMEOUT: number;
    UPSTREAM_ERROR: number;
    NEEDS_USER_CONFIRMATION: number;
    COMPLIANCE_BLOCKED: number;
    PRICE_CHANGED: number;
    OUT_OF_STOCK: number;
    ADDRESS_INVALID: number;
};
/** One of the thirteen codes. */
export type Code = keyof typeof STATUSES;
type Members = {
    [name: string]: unknown;
};
/**
 * An error for the caller. Every code but `TIMEOUT` and `UPSTREAM_ERROR` says that nothing was changed; with those two,
 * `retry_safe: true` says so.
 */
export declare class ToolError extends Error {
    readonly status: number;
    readonly body: object;
    constructor(code: Code, message: string, members?: {
        hint?: string;
        details?: object;
        retry_safe?: boolean;
    } & Members);
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
    readonly actor?: {
        type: "agent" | "user" | "system";
        id: string;
    };
}
/** An answer of a reconcile function; any other means that it does not know. */
export type Outcome = {
    outcome: "happened";
    data: unknown;
} | {
    outcome: "did_not_happen";
} | {
    outcome: "unknown";
};
export declare const DID_NOT_HAPPEN: Outcome;
export declare const happened: (data: unknown) => Outcome;
/** The kind of an argument: its JSON Schema, and the function that makes a value of it from a JSON value. */
export interface Kind<T> {
    readonly schema: Members;
    readonly make: (value: unknown) => T;
    readonly isOptional?: boolean;
}
type Parameters = {
    [name: string]: Kind<any>;
};
/** The arguments that declared parameters make. */
export type Arguments<P extends Parameters> = {
    [N in keyof P]: P[N] extends Kind<infer T> ? T : never;
};
/** Kinds of arguments, each with a description and further keywords of JSON Schema, `default` among them. */
export declare const t: {
    string: (text?: string, more?: Members) => Kind<string>;
    boolean: (text?: string, more?: Members) => Kind<boolean>;
    integer: (text?: string, more?: Members) => Kind<number>;
    number: (text?: string, more?: Members) => Kind<number>;
    /** A decimal number as a string, so that no digit is lost. */
    decimal: (text?: string, more?: Members) => Kind<string>;
    timestamp: (text?: string, more?: Members) => Kind<Date>;
    oneOf: <const V extends readonly (string | number)[]>(values: V, text?: string, more?: Members) => Kind<V[number]>;
    list: <T>(of: Kind<T>, text?: string, more?: Members) => Kind<T[]>;
    map: <T>(of: Kind<T>, text?: string, more?: Members) => Kind<{
        [at: string]: T;
    }>;
    object: <P extends Parameters>(members: P, text?: string, more?: Members) => Kind<Arguments<P>>;
    any: (text?: string, more?: Members) => Kind<unknown>;
    optional: <T>(of: Kind<T>) => Kind<T | undefined>;
};
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
/** Makes a tool of a function and returns the function as it was. */
export declare function tool<P extends Parameters, R>(name: string, options: Options<P>, run: (args: Arguments<P>, ctx: Context) => R): (args: Arguments<P>, ctx: Context) => R;
/** The claims of a `Countersign-Identity`, checked in the order of the page; undefined if a check fails. */
export declare function verify(token: string, secret: string, upstream: string, tool: string, purpose: string, key: string | undefined, body: Uint8Array): Members | undefined;
/** Serves the tools: `app.use(tools("orders"))`, before `express.json()`, or `http.createServer(tools("orders"))`. */
export declare function tools(upstream: string): (req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void) => Promise<void>;
/** The entries of the tools, for countersign.toml. */
export declare function configuration(upstream: string, baseUrl: string): string;
/** `node app.js` serves the tools; `node app.js --countersign` prints their configuration. */
export declare function serve(upstream: string, { host, port }?: {
    host?: string | undefined;
    port?: number | undefined;
}): import("http").Server<typeof IncomingMessage, typeof ServerResponse> | undefined;
export {};
