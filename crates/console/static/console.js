// The console without a script is whole; this adds the keyboard, copying, saved views and live rows. form.js is the form of a tool.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);

// A link that only has to be opened.
const door = one("form[data-auto]");
if (door) door.requestSubmit();

document.addEventListener("click", (event) => { if (event.target.closest("[data-print]")) print(); });

// Copying.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = one(button.dataset.copy);
  await navigator.clipboard.writeText(source.value ?? source.textContent);
  const before = button.textContent;
  button.textContent = button.dataset.done;
  setTimeout(() => { button.textContent = before; }, 1500);
});

// Live rows: told that there are new calls, the page asks for what it may see.
const live = one("[data-live]");
if (live) {
  const rows = one(live.dataset.target);
  const source = new EventSource("/calls/live");
  source.addEventListener("calls", async () => {
    const known = new Set(all("tr[id]", rows).map((row) => row.id));
    await htmx.ajax("GET", live.dataset.live, { target: rows, swap: "innerHTML" });
    all("tr[id]", rows).filter((row) => !known.has(row.id)).forEach((row) => row.classList.add("new"));
    one("[data-empty]")?.remove();
    one("[data-table]")?.removeAttribute("hidden");
  });
  source.addEventListener("open", () => live.classList.remove("off"));
  source.addEventListener("error", () => live.classList.add("off"));
  addEventListener("pagehide", () => source.close());
}

// A list that is narrowed while one writes.
const find = one("[data-find]");
find?.addEventListener("input", () => {
  const wanted = find.value.toLowerCase();
  for (const row of all(find.dataset.find)) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});

// Saved views: addresses of the list of calls, kept in this browser.
const views = one("[data-views]");
if (views) {
  const kept = () => { try { return JSON.parse(localStorage.getItem("countersign.views")) ?? []; } catch { return []; } };
  const keep = (list) => { localStorage.setItem("countersign.views", JSON.stringify(list.slice(-20))); draw(); };
  const draw = () => one("ul", views).replaceChildren(...kept().map(([name, query]) => {
    const [item, link, drop] = ["li", "a", "button"].map((tag) => document.createElement(tag));
    Object.assign(link, { textContent: name, href: `/calls?${query}` });
    Object.assign(drop, { textContent: "×", type: "button", className: "link", ariaLabel: `${views.dataset.drop} ${name}` });
    drop.addEventListener("click", () => keep(kept().filter((view) => view[0] !== name)));
    item.append(link, drop);
    return item;
  }));
  one("form", views)?.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = event.target.elements.name.value.trim();
    if (name) keep([...kept().filter((view) => view[0] !== name), [name, location.search.slice(1)]]);
    event.target.reset();
  });
  views.hidden = false;
  draw();
}

// The keyboard.
let here = -1;
let went = false;
const places = {
  o: "/", a: "/approvals", i: "/in-doubt", n: "/notifications", c: "/calls", t: "/tools", u: "/upstreams", e: "/evidence", p: "/policy", r: "/errors", s: "/settings", d: "/docs",
};

function step(by) {
  const rows = all("main tbody tr:not([hidden])");
  if (!rows.length) return;
  rows[here]?.classList.remove("here");
  here = Math.max(0, Math.min(rows.length - 1, here + by));
  rows[here].classList.add("here");
  rows[here].scrollIntoView({ block: "nearest" });
  one("a", rows[here])?.focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const help = one("#keys");
  const press = {
    "/": () => one("#search")?.focus(),
    "?": () => (help?.open ? help.close() : help?.showModal()),
    ".": () => { const twin = one("[data-twin]"); if (twin) location.href = twin.href; },
    j: () => step(1),
    k: () => step(-1),
    a: () => one("[data-key=a]")?.focus(),
    d: () => one("[data-key=d]")?.focus(),
    g: () => { went = true; setTimeout(() => { went = false; }, 1200); },
  };
  if (went && places[event.key]) { location.href = places[event.key]; return; }
  if (press[event.key]) { event.preventDefault(); press[event.key](); }
});
