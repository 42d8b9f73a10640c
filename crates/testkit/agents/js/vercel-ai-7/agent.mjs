// Drives Vercel `ai` 7 with its stock classes, see ../drive.mjs.

// docs: begin connect
import { createMCPClient } from "@ai-sdk/mcp";
import { generateText, stepCountIs } from "ai";

export function connect(url, apiKey, options = {}) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  return createMCPClient({ transport: { type: "http", url, headers }, ...options });
}

export async function turn(model, tools, messages, options = {}) {
  const result = await generateText({ model, tools, messages, stopWhen: stepCountIs(40), ...options });
  messages.push(...result.responseMessages);
  return result;
}
// docs: end

// docs: begin key
import { AsyncLocalStorage } from "node:async_hooks";

const call = new AsyncLocalStorage(); // the headers of the call that runs

export function connectPerCall(url, apiKey, options = {}) {
  const send = (input, init) => {
    const headers = new Headers(init?.headers);
    if (apiKey) headers.set("Authorization", `Bearer ${apiKey}`);
    for (const [name, value] of Object.entries(call.getStore() ?? {})) headers.set(name, value);
    return fetch(input, { ...init, headers });
  };
  return createMCPClient({ transport: { type: "http", url, fetch: send }, ...options });
}

export function withKeys(tools, conversation) {
  const lost = new Map(); // the keys of calls without an answer
  for (const [name, tool] of Object.entries(tools)) {
    const { execute } = tool;
    tool.execute = async (input, options) => {
      const same = `${name} ${JSON.stringify(input)}`;
      const key = lost.get(same) ?? `${conversation}.${options.toolCallId}`;
      lost.delete(same);
      try {
        return await call.run({ "Idempotency-Key": key }, () => execute(input, options));
      } catch (error) {
        lost.set(same, key); // when the model sends it again, the server gives the first answer
        throw error;
      }
    };
  }
  return tools;
}
// docs: end

// docs: begin form
import { ElicitationRequestSchema } from "@ai-sdk/mcp";

export async function connectWithForms(url, apiKey, ask, options = {}) {
  const client = await connect(url, apiKey, { capabilities: { elicitation: {} }, ...options });
  client.onElicitationRequest(ElicitationRequestSchema, async ({ params }) => {
    const confirm = await ask(params.message); // true, false, or undefined if the user closes the form
    return confirm === undefined ? { action: "cancel" } : { action: "accept", content: { confirm } };
  });
  return client;
}
// docs: end

// docs: begin errors
export function refusals(result) {
  const results = result.steps.flatMap((step) => step.toolResults);
  return results
    .filter(({ output }) => output.isError)
    .map(({ toolName, output }) => {
      const [, code, message] = output.content[0].text.match(/^([A-Z_]+): ([^]*)/) ?? [null, "OTHER", ""];
      return { tool: toolName, code, message, approval: message.match(/\bap_\w+/)?.[0] };
    });
}
// docs: end

import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";

async function streamed(model, tools, messages, options) {
  const stream = streamText({ model, tools, messages, stopWhen: stepCountIs(40), ...options });
  await stream.consumeStream({ onError: (error) => { throw error; } });
  messages.push(...(await stream.responseMessages));
  return { text: await stream.text, steps: await stream.steps };
}

export async function open(spec) {
  const { mcp_url: url, api_key: apiKey } = spec;
  const retries = spec.retry ? { maxRetries: 2 } : {};
  const opened = () => {
    if (spec.keyed) return connectPerCall(url, apiKey, retries);
    if (spec.form) return connectWithForms(url, apiKey, () => spec.form === "accept", retries);
    return connect(url, apiKey, retries);
  };
  const client = await opened();
  const tools = await client.tools();
  if (spec.keyed) withKeys(tools, spec.conversation);
  const openai = createOpenAI({ baseURL: `${spec.model_url}/openai/v1`, apiKey: "none" });
  const model = spec.dialect === "chat" ? openai.chat("scripted") : openai("scripted");
  const options = { maxRetries: 0, timeout: { toolMs: spec.timeout * 1000 } };
  const messages = [];
  return {
    say: async (text) => {
      messages.push({ role: "user", content: text });
      const result = await (spec.stream ? streamed : turn)(model, tools, messages, options);
      return { text: result.text, refused: refusals(result) };
    },
    close: () => client.close(),
  };
}
