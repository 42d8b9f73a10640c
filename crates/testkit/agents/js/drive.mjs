// Drives an agent of one JavaScript framework: `node drive.mjs FRAMEWORK`.
//
// It reads commands as JSON lines and answers each with one, as the drivers in ../py do:
//
//     {"do": "open", "mcp_url": …, "api_key": …, "dialect": "chat", "model_url": …, …}   connect, and begin a conversation
//     {"do": "say", "text": …}                                                            the user says something
//     {"do": "close"}                                                                     disconnect
//
// The answers are {"ok": true, "text": …, "refused": […]} and {"ok": false, "error": …}. `refused` has what a program finds in
// the results of the framework without reading the model's text: the refusals of the server.
//
// Node 22.13 or newer runs it. An older one starts the Node that `npm ci` has installed.

import { spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const FRAMEWORKS = ["vercel-ai-6", "vercel-ai-7", "openai-agents", "langchain", "mastra"];

const DEFAULTS = {
  api_key: null, // of the server
  dialect: "responses", // or chat, and anthropic for langchain
  stream: false,
  retry: false, // the framework's own retry; mastra retries anyway
  keyed: false, // a key per call
  form: null, // the user's answer to a form of the server: accept or decline; only where the framework shows forms
  timeout: 20, // of a call, in seconds; vercel-ai-6 has none
  conversation: "c_1",
};

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 13)) {
  const newer = fileURLToPath(new URL("node_modules/.bin/node", import.meta.url));
  const ran = spawnSync(newer, process.argv.slice(1), { stdio: "inherit" });
  if (ran.error) throw ran.error;
  process.exit(ran.status ?? 1);
}

// What a framework logs must not get between the answers.
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);

function answer(line) {
  write(`${JSON.stringify(line)}\n`);
}

// What a user of the framework would read of an error: its messages and those of its causes.
function reason(error) {
  const told = [];
  for (let cause = error; cause && told.length < 8; cause = cause.cause) {
    told.push(`${cause.name ?? "Error"}: ${cause.message ?? cause}`);
  }
  return told.join(" | ").slice(0, 2000);
}

const framework = process.argv[2];
if (!FRAMEWORKS.includes(framework)) throw new Error(`no such framework: ${framework}; there are ${FRAMEWORKS.join(", ")}`);
const { open } = await import(`./${framework}/agent.mjs`);

let agent = null;

async function perform(command) {
  switch (command.do) {
    case "open":
      agent = await open({ ...DEFAULTS, ...command });
      return { ok: true };
    case "say": {
      const said = await agent.say(command.text);
      return { ok: true, ...said };
    }
    case "close":
      await agent.close();
      agent = null;
      return { ok: true };
    default:
      return { ok: false, error: `no such command: ${command.do}` };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.do !== "open" && agent === null) {
    answer({ ok: command.do === "close", error: "nothing is open" });
    continue;
  }
  try {
    answer(await perform(command));
  } catch (error) {
    answer({ ok: false, error: reason(error), opened: agent !== null });
  }
}
await agent?.close();
process.exit(0); // some frameworks keep sockets or timers
