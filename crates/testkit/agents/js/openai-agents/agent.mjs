// docs: begin connect
import { Agent, MCPServerStreamableHttp, OpenAIProvider, Runner } from "@openai/agents";

export async function connect(url, apiKey) {
  const server = new MCPServerStreamableHttp({
    url,
    requestInit: { headers: apiKey ? { Authorization: `Bearer ${apiKey}` } : {} },
  });
  await server.connect();
  return server;
}

export function shopper(server, model) {
  return new Agent({ name: "shopper", instructions: "You shop for the user.", model, mcpServers: [server] });
}
// docs: end

// docs: begin key
import { randomUUID } from "node:crypto";

export async function connectWithKeys(url, apiKey) {
  const server = new MCPServerStreamableHttp({
    url,
    requestInit: { headers: apiKey ? { Authorization: `Bearer ${apiKey}` } : {} },
    toolMetaResolver: () => ({ "dev.countersign/idempotency_key": randomUUID() }),
  });
  await server.connect();
  return server;
}
// docs: end

export async function open({ mcp, provider, apiKey, api, keyed, model, structured }) {
  const server = keyed ? await connectWithKeys(mcp, apiKey) : await connect(mcp, apiKey);
  if (structured) server.useStructuredContent = true;
  const agent = shopper(server, model);
  const runner = new Runner({
    modelProvider: new OpenAIProvider({ baseURL: provider, apiKey: "sk-stub", useResponses: api !== "chat" }),
    tracingDisabled: true,
  });
  let history = [];
  return {
    ask: async (text) => {
      const result = await runner.run(agent, [...history, { role: "user", content: text }], { maxTurns: 40 });
      history = result.history;
      return result.finalOutput;
    },
    close: () => server.close(),
  };
}
