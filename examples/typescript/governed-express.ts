// The service of `bare-express.ts` as a tool behind Countersign. With `--countersign` it prints its configuration.

import { configuration, t, tool, tools } from "countersign-tool";
import express from "express";
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";

const app = express();
app.use(tools("orders"));
app.use(express.json());

app.post("/orders", (req, res) => {
  res.json(placeOrder(req.body));
});

tool("orders.place", {
  description: "Places an order for an item.",
  parameters: { sku: t.string("Stock keeping unit."), quantity: t.integer("How many.", { minimum: 1, default: 1 }) },
}, (args, ctx) => placeOrder(args, ctx.key));

function placeOrder({ sku, quantity = 1 }: { sku: string; quantity?: number }, id: string = randomUUID()) {
  const order = { order_id: `o_${id}`, sku, quantity };
  appendFileSync(process.env["ORDERS_FILE"] ?? "orders.jsonl", JSON.stringify(order) + "\n");
  return order;
}

if (process.argv.includes("--countersign")) console.log(configuration("orders", "http://127.0.0.1:8000"));
else {
  const server = app.listen(Number(process.env["PORT"] ?? 8000), "127.0.0.1", () => {
    console.log(`orders: http://127.0.0.1:${(server.address() as { port: number }).port}`);
  });
}
