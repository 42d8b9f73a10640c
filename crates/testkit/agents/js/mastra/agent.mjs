// Drives `@mastra/core` and `@mastra/mcp` with their stock classes, see ../drive.mjs.

// docs: begin connect
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";

export function connect(url, apiKey, options = {}) {
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  return new MCPClient({ servers: { countersign: { url: new URL(url), requestInit: { headers }, ...options } } });
}

export function shopper(tools, model) {
  return new Agent({ id: "shopper", name: "shopper", instructions: "You shop for the user.", model, tools });
}
// docs: end

// docs: begin key
export async function toolsWithMeta(client, metaOf) {
  const tools = await client.listTools();
  for (const tool of Object.values(tools)) {
    const { execute } = tool;
    tool.execute = (input, context) => execute(input, { ...context, _meta: metaOf(context.agent.toolCallId) });
  }
  return tools;
}

export function keyPerCall(conversation) {
  return (callId) => ({ "dev.countersign/idempotency_key": `${conversation}.${callId}` });
}
// docs: end

// docs: begin again
export function onPurpose() {
  return { "dev.countersign/again": true };
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
  const listed = () => {
    if (spec.keyed) return toolsWithMeta(client, keyPerCall(spec.conversation));
    if (spec.again) return toolsWithMeta(client, onPurpose);
    return client.listTools();
  };
  const openai = createOpenAI({ baseURL: `${spec.model_url}/openai/v1`, apiKey: "none" });
  const agent = shopper(await listed(), spec.dialect === "chat" ? openai.chat("scripted") : openai("scripted"));
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
