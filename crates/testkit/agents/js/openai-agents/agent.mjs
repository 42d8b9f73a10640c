// Drives `@openai/agents` with its stock classes, see ../drive.mjs.

// docs: begin connect
import { Agent, MCPServerStreamableHttp, Runner } from "@openai/agents";

export async function connect(url, apiKey, options = {}) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  const server = new MCPServerStreamableHttp({ url, requestInit: { headers }, cacheToolsList: true, ...options });
  await server.connect();
  return server;
}

export function shopper(server, model) {
  return new Agent({ name: "shopper", instructions: "You shop for the user.", model, mcpServers: [server] });
}
// docs: end

// docs: begin key
import { randomUUID } from "node:crypto";

export function withKeys(server) {
  const lost = new Map(); // the keys of calls without an answer
  const callToolResult = server.callToolResult.bind(server);
  server.callToolResult = async (name, args, meta, options) => {
    const same = `${name} ${JSON.stringify(args)}`;
    const key = lost.get(same) ?? randomUUID();
    lost.delete(same);
    try {
      return await callToolResult(name, args, { ...meta, "dev.countersign/idempotency_key": key }, options);
    } catch (error) {
      lost.set(same, key); // when the model sends it again, the server gives the first answer
      throw error;
    }
  };
  return server;
}
// docs: end

// docs: begin errors
export function refusals(result) {
  return result.newItems
    .filter((item) => item.type === "tool_call_output_item")
    .map(({ rawItem, output }) => ({ tool: rawItem.name, text: output.text ?? String(output) }))
    .map(({ tool, text }) => ({ tool, refused: text.match(/^([A-Z_]+): ([^]*)/) }))
    .filter(({ refused }) => refused)
    .map(({ tool, refused: [, code, message] }) => {
      return { tool, code, message, approval: message.match(/\bap_\w+/)?.[0] };
    });
}
// docs: end

import { OpenAIProvider } from "@openai/agents";

export async function open(spec) {
  const options = { timeout: spec.timeout * 1000 };
  if (spec.structured) options.useStructuredContent = true;
  const server = await connect(spec.mcp_url, spec.api_key, options);
  if (spec.keyed) withKeys(server);
  const modelProvider = new OpenAIProvider({
    baseURL: `${spec.model_url}/openai/v1`,
    apiKey: "none",
    useResponses: spec.dialect !== "chat",
  });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  const agent = shopper(server, "scripted");
  let history = [];
  return {
    say: async (text) => {
      const input = [...history, { role: "user", content: text }];
      const result = await runner.run(agent, input, { maxTurns: 40, stream: spec.stream });
      await result.completed;
      history = result.history;
      return { text: result.finalOutput, refused: refusals(result) };
    },
    close: () => server.close(),
  };
}
