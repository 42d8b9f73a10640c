// docs: begin connect
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { createAgent } from "langchain";

export function connect(url, apiKey) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  return new MultiServerMCPClient({ mcpServers: { countersign: { transport: "http", url, headers } } });
}

export async function shopper(client, model) {
  return createAgent({ model, tools: await client.getTools() });
}
// docs: end

// docs: begin key
export function connectWithKeys(url, apiKey, conversation) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  return new MultiServerMCPClient({
    mcpServers: { countersign: { transport: "http", url, headers } },
    // These headers replace those of the connection, so the credential is repeated here.
    beforeToolCall: (call, state, runtime) => ({
      headers: { ...headers, "Idempotency-Key": `${conversation}.${runtime.toolCall.id}` },
    }),
  });
}
// docs: end

import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";

function chatModel(api, model, baseURL) {
  if (api === "anthropic") {
    return new ChatAnthropic({ model, apiKey: "sk-stub", anthropicApiUrl: baseURL, maxRetries: 0 });
  }
  return new ChatOpenAI({
    model,
    apiKey: "sk-stub",
    configuration: { baseURL },
    useResponsesApi: api === "responses",
    maxRetries: 0,
  });
}

export async function open({ mcp, provider, apiKey, api, keyed, model }) {
  const client = keyed ? connectWithKeys(mcp, apiKey, keyed) : connect(mcp, apiKey);
  const agent = await shopper(client, chatModel(api, model, provider));
  let messages = [];
  return {
    ask: async (text) => {
      ({ messages } = await agent.invoke(
        { messages: [...messages, { role: "user", content: text }] },
        { recursionLimit: 100 },
      ));
      return messages.at(-1).text;
    },
    close: () => client.close(),
  };
}
