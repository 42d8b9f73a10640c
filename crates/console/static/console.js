// The console without a script is whole; this adds the keyboard, copying, fields and raw JSON in step, and live rows.
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

// Fields and raw JSON in step. The name of a field is its kind and its place, as the server reads it.
const isField = (element) => /^[snblj]:\//.test(element.name || "");
const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const unescape = (part) => part.replaceAll("~1", "/").replaceAll("~0", "~");

function written(kind, text) {
  const trimmed = text.trim();
  switch (kind) {
    case "n": return number.test(trimmed) && Number.isSafeInteger(Math.trunc(Number(trimmed))) ? Number(trimmed) : text;
    case "b": return trimmed === "true" ? true : trimmed === "false" ? false : text;
    case "l": return text.split("\n").map((line) => line.trimEnd()).filter(Boolean);
    case "j": try { return JSON.parse(text); } catch { return text; }
    default: return text;
  }
}

function put(root, pointer, value) {
  const parts = pointer.split("/").slice(1).map(unescape);
  const last = parts.pop();
  let place = root;
  parts.forEach((part, at) => {
    const next = at + 1 < parts.length ? parts[at + 1] : last;
    place[part] ??= /^\d+$/.test(next) ? [] : {};
    place = place[part];
  });
  place[last] = value;
}

function toJson(form) {
  const root = {};
  for (const field of form.elements) {
    if (isField(field) && field.value.trim()) put(root, field.name.slice(2), written(field.name[0], field.value));
  }
  return JSON.stringify(root, (_, value) => (Array.isArray(value) ? value.filter((item) => item != null) : value), 2);
}

function toFields(form, value) {
  for (const field of form.elements) {
    if (!isField(field)) continue;
    const found = field.name.slice(3).split("/").map(unescape).reduce((place, part) => place?.[part], value);
    if (found == null) field.value = "";
    else if (field.name[0] === "l" && Array.isArray(found)) field.value = found.join("\n");
    else field.value = typeof found === "string" && field.name[0] !== "j" ? found : JSON.stringify(found);
  }
}

function showMode(form) {
  const isRaw = form.elements.mode.value === "raw";
  one("[data-fields]", form).hidden = isRaw;
  one("[data-raw]", form).hidden = !isRaw;
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-call]");
  if (!form) return;
  if (event.target.name === "mode") showMode(form);
  else if (isField(event.target)) form.elements.raw.value = toJson(form);
  else if (event.target.name === "raw") {
    try { toFields(form, JSON.parse(event.target.value)); } catch { /* half written */ }
  }
});

// One more item of a list: the last one again, empty, with the next number.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-add]");
  if (!button) return;
  const items = all(":scope > .item", button.closest("fieldset"));
  const last = items[items.length - 1];
  const copy = last.cloneNode(true);
  const [from, to] = [`${button.dataset.add}/${items.length - 1}/`, `${button.dataset.add}/${items.length}/`];
  for (const element of all("[name], [id], [for]", copy)) {
    for (const attribute of ["name", "id", "for"]) {
      const text = element.getAttribute(attribute);
      if (text) element.setAttribute(attribute, text.replace(from, to));
    }
    if ("value" in element && element.tagName !== "BUTTON") element.value = "";
  }
  all(".issue", copy).forEach((issue) => issue.remove());
  last.after(copy);
  one("input, select, textarea", copy)?.focus();
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
const places = { o: "/", a: "/approvals", c: "/calls", t: "/tools", e: "/evidence", d: "/docs", s: "/settings" };

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

all("form[data-call]").forEach(showMode);
document.addEventListener("htmx:after:swap", () => all("form[data-call]").forEach(showMode));
