// Copies the code of the drivers to the pages in docs/agents: `node docs.mjs`, or `node docs.mjs --check` to only compare.
//
// In a driver, code for a page stands between `// docs: begin NAME` and `// docs: end`. On a page, `<!-- code: FOLDER/NAME -->`
// stands before the block that it fills.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const PAGES = new URL("../../../../docs/agents/", import.meta.url);
const isCheck = process.argv.includes("--check");

function snippet(place) {
  const [folder, name] = place.split("/");
  const code = readFileSync(new URL(`${folder}/agent.mjs`, import.meta.url), "utf8");
  const found = code.match(new RegExp(`^// docs: begin ${name}\\n([^]*?)\\n// docs: end$`, "m"));
  if (!found) throw new Error(`${folder}/agent.mjs has no code named ${name}`);
  return found[1];
}

let differs = false;
for (const file of readdirSync(PAGES)) {
  const url = new URL(file, PAGES);
  const page = readFileSync(url, "utf8");
  const filled = page.replace(
    /(<!-- code: ([\w-]+\/\w+) -->\n```js\n)[^]*?(\n```\n)/g,
    (_, before, place, after) => before + snippet(place) + after,
  );
  if (filled === page) continue;
  if (isCheck) {
    differs = true;
    console.error(`docs/agents/${file} has other code than the driver: run node docs.mjs`);
  } else {
    writeFileSync(url, filled);
  }
}
process.exitCode = differs ? 1 : 0;
