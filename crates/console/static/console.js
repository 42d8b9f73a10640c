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
  const draw = async () => {
    const answer = await fetch(live.dataset.live, { headers: { accept: "text/html" }, redirect: "error" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(`<table><tbody>${await answer.text()}</tbody></table>`, "text/html");
    merge(rows, all("tr[id]", page));
    if (!rows.firstElementChild) return;
    one("[data-empty]")?.remove();
    one("[data-table]")?.removeAttribute("hidden");
  };
  // One look at a time; what happens meanwhile is one more.
  let busy = false;
  let again = false;
  source.addEventListener("calls", async () => {
    again = true;
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      await draw().catch(() => {});
    }
    busy = false;
  });
  source.addEventListener("open", () => live.classList.remove("off"));
  source.addEventListener("error", () => live.classList.add("off"));
  addEventListener("pagehide", () => source.close());
}

// Makes the rows of a table those of a newer list, by their ids. Rows that stay are not moved, and a chosen row is not taken away, so the
// choice and the focus stay where they are.
function merge(rows, newer) {
  const isHeld = (part) => part.matches(".here") || part.contains(document.activeElement);
  const ids = new Set(newer.map((row) => row.id));
  for (const row of all("tr[id]", rows)) if (!ids.has(row.id) && !isHeld(row)) row.remove();
  let next = rows.firstElementChild;
  for (const row of newer) {
    const old = document.getElementById(row.id);
    if (old?.parentElement !== rows) {
      row.classList.add("new");
      rows.insertBefore(document.adoptNode(row), next);
      continue;
    }
    [...row.cells].forEach((cell, at) => {
      if (!isHeld(old.cells[at]) && old.cells[at].outerHTML !== cell.outerHTML) old.cells[at].replaceWith(cell.cloneNode(true));
    });
    next = old.nextElementSibling;
  }
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
  const keep = (list) => { localStorage.setItem("countersign.views", JSON.stringify(list.slice(-20))); draw(); label(); };
  const label = () => { one("[data-some]", views).hidden = !kept().length; };
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
  label();
}

// The keyboard.
let went = false;
const places = {
  o: "/", a: "/approvals", g: "/grants", i: "/in-doubt", n: "/notifications", c: "/calls", t: "/tools", u: "/upstreams", e: "/evidence", p: "/policy", r: "/errors", s: "/settings", d: "/docs",
};

function step(by) {
  const rows = all("main tbody tr:not([hidden])");
  if (!rows.length) return;
  const here = rows.findIndex((row) => row.classList.contains("here"));
  const row = rows[Math.max(0, Math.min(rows.length - 1, here + by))];
  one("main tr.here")?.classList.remove("here");
  row.classList.add("here");
  row.scrollIntoView({ block: "nearest" });
  one("a", row)?.focus({ preventScroll: true });
}

// An answer counts for what was read, so in a list the key leads to the question, with the focus on its button.
function answer(key) {
  const button = one(`[data-key=${key}]`);
  const row = one("main tr.here [data-answer]") ?? one("main [data-answer]");
  if (button) button.focus();
  else if (row) location.href = `${row.href}#${key}`;
}
if (["#a", "#d"].includes(location.hash)) answer(location.hash.slice(1));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const help = one("#keyboard-help");
  const press = {
    "/": () => one("#search-all")?.focus(),
    "?": () => (help?.open ? help.close() : help?.showModal()),
    ".": () => { const twin = one("[data-twin]"); if (twin) location.href = twin.href; },
    j: () => step(1),
    k: () => step(-1),
    a: () => answer("a"),
    d: () => answer("d"),
    g: () => { went = true; setTimeout(() => { went = false; }, 1200); },
  };
  if (went && places[event.key]) { location.href = places[event.key]; return; }
  if (press[event.key]) { event.preventDefault(); press[event.key](); }
});
