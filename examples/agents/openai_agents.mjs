// An agent of the OpenAI Agents SDK with the tools of a Countersign server.
//
//     npm install @openai/agents@0.20.0 zod@4
//     countersign serve
//     OPENAI_API_KEY=… node openai_agents.mjs "Find wireless earbuds and make me a draft order, to Berlin."
//
// README.md lists the environment variables. Without an argument the program reads lines from the terminal.

import { Agent, MCPServerStreamableHttp, run } from "@openai/agents";
import { check, converse, headers, instructions, model, server } from "./approvals.mjs";

await check();
const connection = new MCPServerStreamableHttp({
  url: `${server}/mcp`,
  requestInit: { headers },
  cacheToolsList: true,
  timeout: 30_000, // after a lost answer the model sends the call again: the server makes a write once
});
await connection.connect();
const agent = new Agent({ name: "shopper", instructions, model, mcpServers: [connection] });
let history = [];

await converse(async (text) => {
  const result = await run(agent, [...history, { role: "user", content: text }], { maxTurns: 40 });
  history = result.history;
  return result.finalOutput;
});
await connection.close();
process.exit(0); // stdin may still be open
