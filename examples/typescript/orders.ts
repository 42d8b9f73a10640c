// An order service as a tool behind Countersign, with nothing but Node. `--countersign` prints its configuration.
//
// An order and its idempotency key are one line of a file, so that both are there or neither is. A repeat gets the first
// answer, `reconcile` says what became of a call whose answer was lost, and a dry run changes nothing.

import { DID_NOT_HAPPEN, ToolError, happened, serve, t, tool } from "countersign-tool";
import { appendFileSync, existsSync, readFileSync } from "node:fs";

interface Order { order_id: string; sku: string; quantity: number; buyer?: string }

const FILE = process.env["ORDERS_FILE"] ?? "orders.jsonl";
const STOCK: { [sku: string]: number } = { "SKU-1": 10, "SKU-2": 3 };
const orders = new Map<string, Order>();
for (const line of existsSync(FILE) ? readFileSync(FILE, "utf8").split("\n").filter(Boolean) : []) {
  const { key, order } = JSON.parse(line);
  orders.set(key, order);
}

tool("orders.place", {
  description: "Places an order for an item of the warehouse.",
  confirm: true,
  dryRun: true,
  graceSeconds: 5,
  parameters: {
    sku: t.string("Stock keeping unit, such as SKU-1."),
    quantity: t.integer("How many.", { minimum: 1, maximum: 100, default: 1 }),
    note: t.optional(t.string("A note for the packer.")),
  },
  reconcile: (_, { key }) => {
    const order = orders.get(key ?? "");
    return order ? happened(order) : DID_NOT_HAPPEN;
  },
}, ({ sku, quantity }, { key, dryRun, user }) => {
  const left = STOCK[sku];
  if (left === undefined) throw new ToolError("NOT_FOUND", `there is no item ${sku}`, { hint: "use SKU-1 or SKU-2" });
  if (quantity > left) throw new ToolError("OUT_OF_STOCK", `${left} are left`, { details: { left } });
  const first = orders.get(key ?? "");
  if (first) return first;
  const order: Order = { order_id: `o_${key?.slice(-12)}`, sku, quantity, buyer: user };
  if (dryRun || !key) return { ...order, order_id: null };
  appendFileSync(FILE, JSON.stringify({ key, order }) + "\n");
  orders.set(key, order);
  return order;
});

tool("orders.count", { description: "Tells how many orders there are.", effect: "read", parameters: {} }, () => {
  return { orders: orders.size };
});

serve("orders");
