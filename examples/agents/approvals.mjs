// The part that all JavaScript agents here share: settings, a conversation in the terminal, and the user's answers to approvals.

import { createInterface } from "node:readline";

const { env } = process;
export const server = (env.COUNTERSIGN_URL || "http://127.0.0.1:8787").replace(/\/+$/, "");
export const agentKey = env.COUNTERSIGN_KEY || null;
const userKey = env.COUNTERSIGN_USER_KEY || null;
export const model = env.MODEL || "gpt-5";
export const headers = agentKey ? { Authorization: `Bearer ${agentKey}` } : {};
export const instructions =
  "You work for the user with the tools that you have. If a call answers NEEDS_USER_CONFIRMATION, tell the user " +
  "what to confirm and end your turn. After the user has answered, send the same call again with the same arguments.";

// docs: begin approvals
/** The questions that wait for the user: each with `id`, `tool` and `arguments`. */
export async function pending(server, userKey) {
  return (await ask(`${server}/v1/approvals?state=pending`, userKey)).approvals;
}

/** Answers a question with `approve` or `deny`, in the user's name. */
export function answer(server, userKey, approvalId, decision) {
  return ask(`${server}/v1/approvals/${approvalId}`, userKey, { decision });
}

async function ask(url, key, body) {
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  const request = body ? { method: "POST", body: JSON.stringify(body) } : {};
  const reply = await fetch(url, { headers, signal: AbortSignal.timeout(30_000), ...request });
  const read = await reply.json();
  if (!reply.ok) throw new Error(read.error?.message ?? `HTTP ${reply.status}`);
  return read;
}
// docs: end

/** Ends the program with a hint if the server is not reachable or refuses a key. */
export async function check() {
  const alive = await fetch(`${server}/healthz`, { signal: AbortSignal.timeout(30_000) }).catch((error) => error);
  if (!alive.ok) {
    const why = alive.cause?.message || alive.message || `HTTP ${alive.status}`;
    end(`no Countersign server answers at ${server}: ${why}. Start one with \`countersign serve\`, or set COUNTERSIGN_URL.`);
  }
  const keys = [["COUNTERSIGN_KEY", agentKey, "--agent shopper --for ann"]];
  if (userKey) keys.push(["COUNTERSIGN_USER_KEY", userKey, "--user ann"]);
  for (const [name, key, holder] of keys) {
    await pending(server, key).catch(({ message }) => {
      end(`${server} refuses ${name}: ${message}. Make a key: countersign keys create ${holder}`);
    });
  }
}

function end(why) {
  console.error(why);
  process.exit(1);
}

/** Passes lines between the user and the agent. The program's arguments are the only line, if there are any. */
export async function converse(say) {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const line = async (prompt) => {
    process.stdout.write(prompt);
    return (await lines.next()).value?.trim() ?? "";
  };
  const given = process.argv.slice(2).join(" ");
  for (let text; (text = given || (await line("> "))); ) {
    console.log(await say(text));
    while (await settle(line)) console.log(await say("I have answered what you asked. Go on."));
    if (given) break;
  }
}

/** Lets the user answer the questions that wait. True if there is a new answer. */
async function settle(line) {
  let answered = 0;
  const questions = (await pending(server, userKey ?? agentKey)).reverse(); // the oldest first
  for (const { id, actor, tool, arguments: given, ceiling } of questions) {
    const costs = ceiling ? `, at most ${ceiling.text}` : "";
    console.log(printable(`? ${actor.id} wants ${tool} ${JSON.stringify(given)}${costs}`));
    if (!userKey) {
      console.log(`  Answer with \`countersign approvals approve ${id}\` (or deny). Then tell the agent to go on.`);
      continue;
    }
    const said = (await line("  Allow it once? [y/n] ")).toLowerCase();
    if (!["y", "yes", "n", "no"].includes(said)) continue;
    await answer(server, userKey, id, said.startsWith("y") ? "approve" : "deny");
    answered += 1;
  }
  return answered > 0;
}

/** The text without characters that could change what the terminal shows. */
function printable(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (sign) => `\\u${sign.codePointAt(0).toString(16).padStart(4, "0")}`);
}
