// Drives `@mastra/core` and `@mastra/mcp` with their stock classes, see ../drive.mjs.

// docs: begin connect
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";

export function connect(url, apiKey, options = {}) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  return new MCPClient({ servers: { countersign: { url: new URL(url), requestInit: { headers }, ...options } } });
}

export async function toolsOf(client) {
  const { tools, errors } = await client.listToolsWithErrors(); // listTools() only logs why it found none
  if (errors.countersign) throw new Error(errors.countersign);
  return tools;
}

export function shopper(tools, model) {
  return new Agent({ id: "shopper", name: "shopper", instructions: "You shop for the user.", model, tools });
}
// docs: end

// docs: begin key
export function withKeys(tools, conversation) {
  const lost = new Map(); // the keys of calls without an answer
  for (const [name, tool] of Object.entries(tools)) {
    const { execute } = tool;
    tool.execute = async (input, context) => {
      const same = `${name} ${JSON.stringify(input)}`;
      const key = lost.get(same) ?? `${conversation}.${context.agent.toolCallId}`;
      lost.delete(same);
      try {
        return await execute(input, { ...context, _meta: { "dev.countersign/idempotency_key": key } });
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
export function connectWithForms(url, apiKey, ask) {
  const inputRequests = async ({ params }) => {
    const confirm = await ask(params.message); // true, false, or undefined if the user closes the form
    return confirm === undefined ? { action: "cancel" } : { action: "accept", content: { confirm } };
  };
  return connect(url, apiKey, { inputRequests });
}
// docs: end

// docs: begin errors
export function refusals(result) {
  const results = result.steps.flatMap((step) => step.content).filter((part) => part.type === "tool-result");
  return results
    .filter(({ output }) => output.type === "error-text")
    .map(({ toolName, output }) => ({ tool: toolName, refused: output.value.match(/^([A-Z_]+): ([^]*)/) }))
    .filter(({ refused }) => refused)
    .map(({ tool, refused: [, code, message] }) => {
      return { tool, code, message, approval: message.match(/\bap_\w+/)?.[0] };
    });
}
// docs: end

import { createOpenAI } from "@ai-sdk/openai";

export async function open(spec) {
  const { mcp_url: url, api_key: apiKey, form } = spec;
  const options = { timeout: spec.timeout * 1000 };
  const client = form ? connectWithForms(url, apiKey, () => form === "accept") : connect(url, apiKey, options);
  const tools = await toolsOf(client);
  if (spec.keyed) withKeys(tools, spec.conversation);
  const openai = createOpenAI({ baseURL: `${spec.model_url}/openai/v1`, apiKey: "none" });
  const agent = shopper(tools, spec.dialect === "chat" ? openai.chat("scripted") : openai("scripted"));
  const messages = [];
  return {
    say: async (text) => {
      messages.push({ role: "user", content: text });
      const result = spec.stream
        ? await (await agent.stream(messages, { maxSteps: 40 })).getFullOutput()
        : await agent.generate(messages, { maxSteps: 40 });
      messages.push(...result.response.messages);
      return { text: result.text, refused: refusals(result) };
    },
    close: () => client.disconnect(),
  };
}
