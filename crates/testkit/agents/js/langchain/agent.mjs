// Drives `langchain` and `@langchain/mcp-adapters` with their stock classes, see ../drive.mjs.

// docs: begin connect
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent } from "langchain";

export function connect(url, apiKey, options = {}) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  return new MultiServerMCPClient({ mcpServers: { countersign: { transport: "http", url, headers } }, ...options });
}

export async function shopper(client, model, middleware = []) {
  return createAgent({ model, tools: await client.getTools(), middleware });
}
// docs: end

// docs: begin key
export function keyPerCall(apiKey, conversation) {
  // The headers of a call replace those of the connection, so the credential is repeated.
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  const unanswered = new Map(); // the keys of calls without an answer
  const same = ({ name, args }) => `${name} ${JSON.stringify(args)}`;
  return {
    beforeToolCall: (call, state, runtime) => {
      // When the model sends a lost call again, it has the first key, and the server gives the first answer.
      const key = unanswered.get(same(call)) ?? `${conversation}.${runtime.toolCall.id}`;
      unanswered.set(same(call), key);
      return { headers: { ...headers, "Idempotency-Key": key } };
    },
    afterToolCall: (call) => {
      unanswered.delete(same(call));
    },
  };
}
// docs: end

// docs: begin retry
import { toolRetryMiddleware } from "langchain";

// What the server or the library has refused is not retried: it would be refused again. `onFailure` tells the model why.
export const retry = toolRetryMiddleware({
  maxRetries: 2,
  initialDelayMs: 50,
  retryOn: (error) => !/returned an error|did not match expected schema/.test(error.message),
  onFailure: (error) => error.message,
});
// docs: end

// docs: begin errors
export function refusals(messages) {
  return messages
    .filter((message) => message.type === "tool" && message.status === "error")
    .map(({ name, text }) => ({ tool: name, refused: text.match(/returned an error: ([A-Z_]+): ([^]*)/) }))
    .filter(({ refused }) => refused)
    .map(({ tool, refused: [, code, message] }) => {
      return { tool, code, message, approval: message.match(/\bap_\w+/)?.[0] };
    });
}
// docs: end

import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";

function provider(spec) {
  const common = { model: "scripted", apiKey: "none", maxRetries: 0 };
  if (spec.dialect === "anthropic") {
    return new ChatAnthropic({ ...common, anthropicApiUrl: `${spec.model_url}/anthropic` });
  }
  const configuration = { baseURL: `${spec.model_url}/openai/v1` };
  return new ChatOpenAI({ ...common, configuration, useResponsesApi: spec.dialect === "responses" });
}

async function streamed(agent, input, options) {
  let state;
  for await (const [mode, chunk] of await agent.stream(input, { ...options, streamMode: ["messages", "values"] })) {
    if (mode === "values") state = chunk;
  }
  return state;
}

export async function open(spec) {
  const { mcp_url: url, api_key: apiKey, conversation } = spec;
  const hooks = spec.keyed ? keyPerCall(apiKey, conversation) : {};
  const client = connect(url, apiKey, { defaultToolTimeout: spec.timeout * 1000, ...hooks });
  const agent = await shopper(client, provider(spec), spec.retry ? [retry] : []);
  let messages = [];
  return {
    say: async (text) => {
      const before = [...messages, { role: "user", content: text }];
      const options = { recursionLimit: 100 };
      ({ messages } = spec.stream
        ? await streamed(agent, { messages: before }, options)
        : await agent.invoke({ messages: before }, options));
      return { text: messages.at(-1).text, refused: refusals(messages.slice(before.length)) };
    },
    close: () => client.close(),
  };
}
