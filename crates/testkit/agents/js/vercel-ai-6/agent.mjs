// docs: begin connect
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";

export async function connect(url, apiKey) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  const client = await createMCPClient({ transport: { type: "http", url, headers } });
  return { client, tools: await client.tools() };
}

export async function turn(model, tools, messages) {
  const { text, response } = await generateText({ model, tools, messages, stopWhen: stepCountIs(40) });
  messages.push(...response.messages);
  return text;
}
// docs: end

// docs: begin key
import { AsyncLocalStorage } from "node:async_hooks";

const keys = new AsyncLocalStorage();

export async function connectWithKeys(url, apiKey, conversation) {
  const client = await createMCPClient({
    maxRetries: 2, // safe, because every attempt sends the same key
    transport: {
      type: "http",
      url,
      fetch: (input, init) => {
        const headers = new Headers(init?.headers);
        if (apiKey) headers.set("Authorization", `Bearer ${apiKey}`);
        if (keys.getStore()) headers.set("Idempotency-Key", keys.getStore());
        return fetch(input, { ...init, headers });
      },
    },
  });
  const tools = await client.tools();
  for (const tool of Object.values(tools)) {
    const { execute } = tool;
    tool.execute = (input, options) =>
      keys.run(`${conversation}.${options.toolCallId}`, () => execute(input, options));
  }
  return { client, tools };
}
// docs: end

export async function open({ mcp, provider, apiKey, api, keyed, model }) {
  const connected = keyed ? await connectWithKeys(mcp, apiKey, keyed) : await connect(mcp, apiKey);
  const openai = createOpenAI({ baseURL: provider, apiKey: "sk-stub" });
  const messages = [];
  return {
    ask: (text) => {
      messages.push({ role: "user", content: text });
      return turn(api === "chat" ? openai.chat(model) : openai(model), connected.tools, messages);
    },
    close: () => connected.client.close(),
  };
}
