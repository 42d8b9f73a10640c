// An agent of the Vercel AI SDK with the tools of a Countersign server.
//
//     npm install ai@7.0.169 @ai-sdk/mcp@2.0.96 @ai-sdk/openai@4.0.114    # or ai@6.0.326 @ai-sdk/mcp@1.0.101 @ai-sdk/openai@3.0.139
//     countersign serve
//     OPENAI_API_KEY=… node vercel_ai.mjs "Find wireless earbuds and make me a draft order, to Berlin."
//
// README.md lists the environment variables. Without an argument the program reads lines from the terminal.

import { createMCPClient } from "@ai-sdk/mcp";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";
import { check, converse, headers, instructions, model, server } from "./approvals.mjs";

await check();
const client = await createMCPClient({ transport: { type: "http", url: `${server}/mcp`, headers } });
const tools = await client.tools();
const messages = [];

await converse(async (text) => {
  messages.push({ role: "user", content: text });
  const result = await generateText({
    model: openai(model),
    system: instructions,
    messages,
    tools,
    stopWhen: stepCountIs(40),
    timeout: { toolMs: 30_000 }, // ai 7; ai 6 has no time limit for one call
  });
  messages.push(...(result.responseMessages ?? result.response.messages)); // ai 7 ?? ai 6
  return result.text;
});
await client.close();
process.exit(0); // stdin may still be open
