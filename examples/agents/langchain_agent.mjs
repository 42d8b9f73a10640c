// An agent of LangChain.js with the tools of a Countersign server.
//
//     npm install langchain@1.5.14 @langchain/core@1.2.13 @langchain/langgraph@1.4.18 @langchain/mcp-adapters@1.1.4 @langchain/openai@1.6.0
//     countersign serve
//     OPENAI_API_KEY=… node langchain_agent.mjs "Find wireless earbuds and make me a draft order, to Berlin."
//
// README.md lists the environment variables. Without an argument the program reads lines from the terminal.

import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, toolRetryMiddleware } from "langchain";
import { check, converse, headers, instructions, model, server } from "./approvals.mjs";

await check();
const client = new MultiServerMCPClient({
  mcpServers: { countersign: { transport: "http", url: `${server}/mcp`, headers } },
  defaultToolTimeout: 30_000,
});
// Sends a call again after a lost answer; the server makes a write once. What was refused is not retried: the model reads why.
const retry = toolRetryMiddleware({
  maxRetries: 2,
  retryOn: (error) => !/returned an error|did not match expected schema/.test(error.message),
  onFailure: (error) => error.message,
});
const agent = createAgent({
  model: new ChatOpenAI({ model }),
  tools: await client.getTools(),
  systemPrompt: instructions,
  middleware: [retry],
});
let messages = [];

await converse(async (text) => {
  const before = [...messages, { role: "user", content: text }];
  ({ messages } = await agent.invoke({ messages: before }, { recursionLimit: 100 }));
  return messages.at(-1).text;
});
await client.close();
process.exit(0); // stdin may still be open
