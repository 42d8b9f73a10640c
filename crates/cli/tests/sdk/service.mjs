// Tools for tests, which fail, wait and die as they are asked to: alone (`node service.mjs`) or in Express (`node service.mjs express`).
import { DID_NOT_HAPPEN, ToolError, happened, serve, t, tool, tools } from "countersign-tool";
import express from "express";
import { appendFileSync, existsSync, readFileSync } from "node:fs";

const JOURNAL = process.env.JOURNAL;
class SoldOut extends Error {}

async function hang(where) {
  if ("CALM" in process.env) return;
  console.log(where);
  await new Promise(() => setInterval(() => {}, 60_000));
}

function find(key) {
  const lines = existsSync(JOURNAL) ? readFileSync(JOURNAL, "utf8").split("\n").filter(Boolean) : [];
  return lines.map((line) => JSON.parse(line)).find((order) => order.key === key)?.order;
}

tool("t.order", {
  description: "Places an order.",
  dryRun: true,
  graceSeconds: 0,
  parameters: { sku: t.string("Stock keeping unit."), quantity: t.integer("", { default: 1 }) },
  reconcile: (_, { key }) => (find(key) ? happened(find(key)) : DID_NOT_HAPPEN),
}, async ({ sku, quantity }, { key, dryRun }) => {
  const made = { sku, quantity };
  if (dryRun) return made;
  if (find(key)) return find(key);
  if (sku === "before") await hang("before");
  appendFileSync(JOURNAL, JSON.stringify({ key, order: made }) + "\n");
  if (sku === "after") await hang("after");
  return made;
});

tool("t.fail", {
  description: "Fails.",
  errors: [[SoldOut, "OUT_OF_STOCK"]],
  parameters: { how: t.oneOf(["code", "declared", "safe", "bug"]) },
}, ({ how }) => {
  if (how === "code") throw new ToolError("PRICE_CHANGED", "it costs more now", { hint: "ask again", details: { price: "12.50" } });
  if (how === "declared") throw new SoldOut("none is left");
  if (how === "safe") throw new ToolError("UPSTREAM_ERROR", "the bank is closed", { retry_safe: true });
  throw new TypeError("the password is hunter2");
});

tool("t.who", { description: "Tells who calls.", effect: "read", parameters: {} }, (_, ctx) => {
  const left = ctx.deadline.getTime() - Date.now();
  const { user, realm, actor, key } = ctx;
  return { user, realm, actor, request_id: ctx.requestId, trace: !!ctx.traceparent, in_time: left > 0 && left <= 60_000, key: key ?? null };
});

tool("t.big", { description: "Answers with so many bytes.", effect: "read", parameters: { size: t.integer() } }, ({ size }) => {
  return { text: "x".repeat(size) };
});

tool("t.late", { description: "Waits for longer than anybody waits for it.", settings: { deadline_ms: 2000 }, parameters: {} }, async (_, ctx) => {
  await new Promise((aborted) => ctx.signal.addEventListener("abort", aborted));
  // Not the clock: a timer of Node counts from the start of its turn, so it can be early by as long as the turn took.
  console.log("late", ctx.signal.reason?.name === "TimeoutError" ? "True" : "False");
  // It does not answer before the caller has gone, whose clock may be the later one.
  await new Promise((later) => setTimeout(later, 10_000));
});

if (process.argv.includes("express")) {
  const app = express();
  app.use(tools("svc"));
  app.use(express.json());
  app.get("/health", (_, res) => res.json("well"));
  const server = app.listen(Number(process.env.PORT), "127.0.0.1", () => console.log(`svc: http://127.0.0.1:${server.address().port}`));
} else {
  serve("svc");
}
