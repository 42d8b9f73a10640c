// The form of a tool: fields and raw JSON in step, more items of a list, and copies of the call as the form is now.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);
// Fields and raw JSON in step. The name of a field is its kind and its place, as the server reads it (src/form/read.rs).
const named = (element) => /^(k?)([snbtlrj]?)(\??):(\/.*)$/.exec(element.name || "");
const isField = (element) => named(element) !== null;
const decimal = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const unescape = (part) => part.replaceAll("~1", "/").replaceAll("~0", "~");
const parts = (pointer) => pointer.split("/").slice(1).map(unescape);

// A number stays the text that it is, in a string with this mark: a double would round it.
const mark = `\uE000${Math.random().toString(36).slice(2)}:`;
const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const isNumber = (value) => typeof value === "string" && value.startsWith(mark);
const digits = (text) => (isNumber(text) ? text.slice(mark.length) : text);
const toText = (value, indent) => JSON.stringify(value, (_, inner) => dense(inner), indent).replace(new RegExp(`"${mark}([^"]*)"`, "g"), "$1");

const members = (value) => (typeof value === "object" && value !== null ? value : {});
function parse(text) {
  JSON.parse(text);
  return JSON.parse(text.replace(tokens, (token) => (token[0] === '"' ? token : JSON.stringify(mark + token))));
}

const number = (text) => (decimal.test(text.trim()) ? mark + text.trim() : text);

// A time as its input has it: UTC, whole seconds. Undefined where something would be lost.
const local = (text) => (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.0+)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text)) ? new Date(text).toISOString().slice(0, 19) : undefined);

function written(kind, text) {
  const trimmed = text.trim();
  const lines = () => text.split("\n").map((line) => line.trimEnd()).filter(Boolean);
  switch (kind) {
    case "n": return number(text);
    case "b": return trimmed === "true" ? true : trimmed === "false" ? false : text;
    case "t": return /^[\d-]+T\d\d:\d\d(:\d\d)?$/.test(trimmed) ? `${trimmed.padEnd(19, ":00")}Z` : text;
    case "l": return lines();
    case "r": return lines().map(number);
    case "j": try { return parse(text); } catch { return text; }
    default: return text;
  }
}

// What a field was given from raw JSON, and how it shows it: a field that is not edited gives that back.
const given = new WeakMap();

function put(root, path, isEntry, value) {
  let place = root;
  path.slice(0, -1).forEach((part, at) => {
    const isLast = at + 2 === path.length;
    place[part] ??= /^\d+$/.test(path[at + 1]) && !(isLast && isEntry) ? [] : {};
    place = place[part];
  });
  place[path.at(-1)] = value;
}

// A list has no gaps; a null that somebody wrote is not one.
const dense = (value) => (Array.isArray(value) ? Array.from(value).filter((item) => item !== undefined) : value);

function toJson(form) {
  const [root, keys] = [{}, new Map()];
  const fields = [...form.elements].filter(isField).map((element) => [named(element), element.value, given.get(element)]);
  for (const [[, entry, kind, , pointer], text] of fields) if (entry && !kind) keys.set(pointer, text.trim());
  for (const [[, entry, kind, orNull, pointer], text, known] of fields) {
    const isAsGiven = known?.shown === text && known.value !== undefined;
    if (!kind || (!text.trim() && !orNull && !isAsGiven)) continue;
    const path = parts(pointer);
    if (entry) path.splice(-1, 1, keys.get(pointer) ?? "");
    put(root, path, entry, isAsGiven ? known.value : text.trim() ? written(kind, text) : null);
  }
  return toText(root, 2);
}

// A value as its field shows it. An input that cannot show a day or a time becomes a line of text, and a choice gets one more option.
function show(field, kind, found) {
  const isList = "lr".includes(kind || "-") && Array.isArray(found);
  const text = (value) => (typeof value === "string" && kind !== "j" ? digits(value) : toText(value));
  const shown = found == null ? "" : isList ? found.map(text).join("\n") : text(found);
  const picker = field.dataset.type;
  if (picker) field.type = picker;
  if (field.tagName === "SELECT" && ![...field.options].some((option) => option.value === shown)) field.add(new Option(shown));
  field.value = picker === "datetime-local" ? local(shown) ?? "" : shown;
  if (picker && !field.value && shown) [field.type, field.value] = ["text", shown];
  given.set(field, { shown: field.value, value: found });
}

function toFields(form, value) {
  const at = (path) => path.reduce((place, part) => members(place)[part], value);
  // As many rows as there are values.
  for (let again = true; again;) {
    again = false;
    for (const button of all("[data-add]", form)) {
      const rows = all(":scope > .item", button.closest("fieldset")).length;
      const wanted = Object.keys(members(at(parts(button.dataset.add)))).length;
      if (rows < wanted && rows < 200) again = Boolean(addItem(button));
    }
  }
  for (const field of form.elements) {
    const [, entry, kind, , pointer] = named(field) ?? [];
    if (!pointer) continue;
    const path = parts(pointer);
    let found = at(path);
    if (entry) {
      const [key, own] = Object.entries(members(at(path.slice(0, -1))))[path.at(-1)] ?? [];
      found = kind ? own : key;
    }
    show(field, kind, found);
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
    try { toFields(form, parse(event.target.value)); } catch { /* half written */ }
  }
});

// What is copied is what the form says now.
document.addEventListener("change", async (event) => {
  const form = event.target.closest("form[data-call]");
  if (!form || event.target.name === "mode") return;
  const body = new URLSearchParams(new FormData(form));
  body.set("look", "copies");
  const answer = await fetch(form.action, { method: "POST", body });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const open = all("#copies details", document).map((one) => one.open);
  const copies = one("#copies", page);
  if (!copies) return;
  all("details", copies).forEach((one, at) => { one.open = open[at]; });
  one("#copies")?.replaceWith(copies);
});

// The names of a row, and of everything in it, say its number.
function renumber(row, base, from, to) {
  const [old, next] = [`${base}/${from}`, `${base}/${to}`];
  for (const element of all("[name], [id], [for], [data-add], [data-drop]", row)) {
    for (const attribute of ["name", "id", "for", "data-add", "data-drop"]) {
      const text = element.getAttribute(attribute);
      if (text && (text.endsWith(old) || text.includes(`${old}/`))) element.setAttribute(attribute, text.replace(old, next));
    }
  }
}

function empty(row) {
  // Lists within begin with one item too.
  for (const inner of all("fieldset", row)) all(":scope > .item", inner).slice(1).forEach((item) => item.remove());
  for (const element of all("input, select, textarea", row)) {
    if (element.dataset.type) element.type = element.dataset.type;
    element.value = "";
    given.delete(element);
  }
  all(".issue", row).forEach((issue) => issue.remove());
}

// One more item of a list or of a map: the last one again, empty, with the next number.
function addItem(button) {
  const items = all(":scope > .item", button.closest("fieldset"));
  const copy = items.at(-1).cloneNode(true);
  renumber(copy, button.dataset.add, items.length - 1, items.length);
  empty(copy);
  items.at(-1).after(copy);
  return copy;
}

// One item less. Those behind it move up; the last one that is left is emptied.
function dropItem(button) {
  const [row, base, form] = [button.closest(".item"), button.dataset.drop, button.form];
  const items = all(":scope > .item", row.parentElement);
  const at = items.indexOf(row);
  if (items.length === 1) empty(row);
  else {
    row.remove();
    items.slice(at + 1).forEach((item, next) => renumber(item, base, at + 1 + next, at + next));
  }
  one("input, select, textarea", items[at + 1] ?? items[at - 1] ?? row)?.focus();
  form.elements.raw.value = toJson(form);
  form.dispatchEvent(new Event("change", { bubbles: true }));
}

document.addEventListener("click", (event) => {
  const drop = event.target.closest("[data-drop]");
  if (drop?.form?.matches("[data-call]")) dropItem(drop);
  const button = event.target.closest("[data-add]");
  if (button) one("input, select, textarea", addItem(button))?.focus();
});

all("form[data-call]").forEach(showMode);
document.addEventListener("htmx:after:swap", () => all("form[data-call]").forEach(showMode));
