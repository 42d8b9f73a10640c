// docs: begin connect
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";

export function connect(url, apiKey) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  return new MCPClient({
    servers: { countersign: { url: new URL(url), requestInit: { headers } } },
  });
}

export function shopper(tools, model) {
  return new Agent({ id: "shopper", name: "shopper", instructions: "You shop for the user.", model, tools });
}
// docs: end

// docs: begin key
export async function toolsWithKeys(client, conversation) {
  const tools = await client.listTools();
  for (const tool of Object.values(tools)) {
    const { execute } = tool;
    tool.execute = (input, context) => {
      const key = `${conversation}.${context.agent.toolCallId}`;
      return execute(input, { ...context, _meta: { "dev.countersign/idempotency_key": key } });
    };
  }
  return tools;
}
// docs: end

import { createOpenAI } from "@ai-sdk/openai";

export async function open({ mcp, provider, apiKey, api, keyed, model }) {
  const client = connect(mcp, apiKey);
  const openai = createOpenAI({ baseURL: provider, apiKey: "sk-stub" });
  const tools = keyed ? await toolsWithKeys(client, keyed) : await client.listTools();
  const agent = shopper(tools, api === "chat" ? openai.chat(model) : openai(model));
  const messages = [];
  return {
    ask: async (text) => {
      messages.push({ role: "user", content: text });
      const result = await agent.generate(messages, { maxSteps: 40 });
      messages.push(...result.response.messages);
      return result.text;
    },
    close: () => client.disconnect(),
  };
}
