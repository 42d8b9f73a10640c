// A server of the TypeScript SDK, as its documentation shows one. The first argument is the folder that the SDK is installed in.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const from = createRequire(`${process.argv[2]}/package.json`);
const load = (name) => import(pathToFileURL(from.resolve(name)));
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = await load("zod");

const server = new McpServer({ name: "ts", version: "1.0.0" });

server.registerTool(
  "add",
  {
    description: "Adds two numbers.",
    inputSchema: { a: z.number(), b: z.number() },
    outputSchema: { sum: z.number() },
    annotations: { readOnlyHint: true },
  },
  async ({ a, b }) => {
    const structuredContent = { sum: a + b };
    return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
  },
);

server.registerTool(
  "greet",
  { description: "Greets somebody.", inputSchema: { name: z.string() } },
  async ({ name }) => ({ content: [{ type: "text", text: `hello ${name}` }] }),
);

server.registerTool("fail", { description: "Fails.", inputSchema: { why: z.string() } }, async ({ why }) => {
  throw new Error(why);
});

server.registerTool(
  "steps",
  { description: "Reports each step, and answers.", inputSchema: { count: z.number() } },
  async ({ count }, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (let progress = 1; progress <= count; progress += 1) {
      const params = { progressToken, progress, total: count, message: `step ${progress}` };
      await extra.sendNotification({ method: "notifications/progress", params });
    }
    return { content: [{ type: "text", text: "done" }] };
  },
);

let runs = 0;

server.registerTool(
  "ask",
  { description: "Asks the user for a name, and answers with what was said.", inputSchema: { question: z.string() } },
  async ({ question }) => {
    runs += 1;
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const { action, content } = await server.server.elicitInput({ message: question, requestedSchema });
    return { content: [{ type: "text", text: `run ${runs}: ${action} ${content?.name ?? ""}` }] };
  },
);

await server.connect(new StdioServerTransport());
