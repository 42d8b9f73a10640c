// A service as there are many. `governed-express.ts` is the same service as a tool behind Countersign.

import express from "express";
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";

const app = express();
app.use(express.json());

app.post("/orders", (req, res) => {
  res.json(placeOrder(req.body));
});

function placeOrder({ sku, quantity = 1 }: { sku: string; quantity?: number }, id: string = randomUUID()) {
  const order = { order_id: `o_${id}`, sku, quantity };
  appendFileSync(process.env["ORDERS_FILE"] ?? "orders.jsonl", JSON.stringify(order) + "\n");
  return order;
}

const server = app.listen(Number(process.env["PORT"] ?? 8000), "127.0.0.1", () => {
  console.log(`orders: http://127.0.0.1:${(server.address() as { port: number }).port}`);
});
