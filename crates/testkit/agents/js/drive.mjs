// A conversation with an agent of one framework, for run.py:
//
//     node drive.mjs FRAMEWORK --mcp URL --provider URL [--api responses|chat|anthropic] [--api-key KEY]
//                    [--keys PREFIX] [--retry] [--form accept|decline]
//
// Reads what the user says, one JSON string a line, and writes one line a turn: {"framework", "text"} or {"framework", "error"}.
// It ends with standard input. Node 22.13 or newer runs it; an older one starts the Node that `npm ci` has installed.

import { spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 13)) {
  const newer = fileURLToPath(new URL("node_modules/.bin/node", import.meta.url));
  const ran = spawnSync(newer, process.argv.slice(1), { stdio: "inherit" });
  if (ran.error) throw ran.error;
  process.exit(ran.status ?? 1);
}

const { positionals, values: given } = parseArgs({
  allowPositionals: true,
  options: {
    mcp: { type: "string" },
    provider: { type: "string" },
    api: { type: "string", default: "responses" },
    "api-key": { type: "string" },
    keys: { type: "string" },
    retry: { type: "boolean", default: false },
    form: { type: "string" },
  },
});
const framework = positionals[0];

function say(line) {
  process.stdout.write(`${JSON.stringify({ framework, ...line })}\n`);
}

// The text of an error and of what caused it: frameworks wrap what they got.
function text(error) {
  const texts = [];
  for (let cause = error; cause && texts.length < 5; cause = cause.cause) texts.push(String(cause.message ?? cause));
  return [...new Set(texts)].join(": ").slice(0, 2000);
}

let agent;
try {
  const { open } = await import(`./${framework}/agent.mjs`);
  for await (const line of createInterface({ input: process.stdin })) {
    if (!line.trim()) continue;
    agent ??= await open({
      mcp: given.mcp,
      provider: given.api === "anthropic" ? `${given.provider}/anthropic` : `${given.provider}/openai/v1`,
      api: given.api,
      model: given.api === "anthropic" ? "claude-sonnet-4-5" : "gpt-5",
      apiKey: given["api-key"],
      keys: given.keys,
      retry: given.retry,
      form: given.form,
    });
    try {
      say({ text: await agent.ask(JSON.parse(line)) });
    } catch (error) {
      say({ error: text(error) });
    }
  }
} catch (error) {
  say({ error: text(error) });
  process.exitCode = 1;
} finally {
  await agent?.close().catch(() => {});
}
