// An agent of Mastra with the tools of a Countersign server. It needs Node 22.13 or newer.
//
//     npm install @mastra/core@1.71.0 @mastra/mcp@2.0.0 @ai-sdk/openai@4.0.114 zod@4
//     countersign serve
//     OPENAI_API_KEY=… node mastra_agent.mjs "Find wireless earbuds and make me a draft order, to Berlin."
//
// README.md lists the environment variables. Without an argument the program reads lines from the terminal.

import { openai } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";
import { check, converse, headers, instructions, model, server } from "./approvals.mjs";

await check();
const client = new MCPClient({
  servers: { countersign: { url: new URL(`${server}/mcp`), requestInit: { headers }, timeout: 30_000 } },
});
const { tools, errors } = await client.listToolsWithErrors(); // listTools() only logs why it found none
if (errors.countersign) throw new Error(errors.countersign);
const agent = new Agent({ id: "shopper", name: "shopper", instructions, model: openai(model), tools });
const messages = [];

await converse(async (text) => {
  messages.push({ role: "user", content: text });
  const result = await agent.generate(messages, { maxSteps: 40 });
  messages.push(...result.response.messages);
  return result.text;
});
await client.disconnect();
process.exit(0); // stdin may still be open
