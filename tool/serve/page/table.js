// The table of names. Only the rows on the screen are in the document, so ten thousand names cost as much as thirty.
import { element, visible, duration, processName, deathOf, lockAddress } from "./text.js";
import { state, on, now } from "./state.js";

const byId = (id) => document.getElementById(id);
const grid = byId("grid");
const body = byId("rows");
const search = byId("search");
const sortBy = byId("sort"); // where there is no room for the heads of the columns
const filters = { only: byId("only"), kind: byId("kind"), store: byId("store") };

function holderOf(row) {
  if (row.lock.error) return visible(row.lock.error);
  if (!row.holders.length) return "";
  const more = row.holders.length > 1 ? " +" + (row.holders.length - 1) : "";
  return processName(row.holders[0]) + more;
}

function kindOf(row) {
  const { kind, capacity, remaining } = row.lock;
  if (kind !== "semaphore" && kind !== "latch") return row.kind;
  return kind + " " + (capacity - remaining) + "/" + capacity;
}

// Unknown values come last, in either order.
const columns = [
  { id: "name", title: "Name", text: (r) => visible(r.name), key: (r) => r.name },
  { id: "kind", title: "Kind", text: kindOf, key: (r) => r.kind },
  { id: "holder", title: "Holder", text: holderOf, key: (r) => holderOf(r) || undefined },
  { id: "reason", title: "Reason", text: (r) => deathOf(r.holders) || visible((r.holders[0] ?? r.waiters[0])?.reason),
    key: (r) => (r.holders[0] ?? r.waiters[0])?.reason || undefined },
  { id: "held", title: "Held for", number: true, text: (r) => duration(now() - r.heldSince), key: (r) => r.heldSince },
  { id: "lease", title: "Lease left", number: true, text: (r) => (r.holders[0]?.died ? "died" : duration(r.leaseEnd - now())),
    key: (r) => r.leaseEnd },
  { id: "waiters", title: "Waiting", number: true, text: (r) => (r.waiters.length ? String(r.waiters.length) : ""),
    key: (r) => -r.waiters.length },
  { id: "oldest", title: "Oldest wait", number: true, text: (r) => duration(now() - r.oldestWait), key: (r) => r.oldestWait },
  { id: "fence", title: "Last fence", number: true, text: (r) => r.lock.last_fence ?? "",
    key: (r) => (r.lock.last_fence ? -Number(r.lock.last_fence) : undefined) },
];

let sorted = { column: columns[0], down: false };
let shown = [];
let selected = -1;
let selectedKey = null;
const pool = [];

function compare(a, b) {
  const { column, down } = sorted;
  const x = column.key(a), y = column.key(b);
  const noX = x === undefined || Number.isNaN(x), noY = y === undefined || Number.isNaN(y);
  if (noX || noY) return noX - noY || (a.key < b.key ? -1 : 1);
  if (x !== y) return (x < y ? -1 : 1) * (down ? -1 : 1);
  return a.key < b.key ? -1 : 1;
}

function choose() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const { only, kind, store } = filters;
  shown = [];
  for (const row of state.rows.values()) {
    if (only.value === "held" && !row.holders.length) continue;
    if (only.value === "waiting" && !row.waiters.length) continue;
    if (kind.value && row.kind !== kind.value) continue;
    if (store.value && row.store !== Number(store.value)) continue;
    if (words.every((w) => row.text.includes(w))) shown.push(row);
  }
  shown.sort(compare);
  selected = selectedKey === null ? -1 : shown.findIndex((r) => r.key === selectedKey);
  byId("shown").textContent = shown.length === state.rows.size
    ? shown.length + " names" : shown.length + " of " + state.rows.size + " names";
  body.style.height = shown.length * rowHeight() + "px";
  grid.setAttribute("aria-rowcount", String(shown.length + 1));
  draw();
}

const rowHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));

function poolRow(i) {
  while (pool.length <= i) {
    const cells = columns.map((c) => element("span", { className: c.id + (c.number ? " number" : ""), role: "gridcell" }));
    const row = element("div", { className: "row", role: "row" }, cells);
    row.addEventListener("click", () => open(row.place));
    pool.push(row);
    body.append(row);
  }
  return pool[i];
}

function fill(element_, row, place, height) {
  element_.hidden = false;
  element_.place = place;
  element_.id = "row-" + place;
  element_.style.transform = "translateY(" + place * height + "px)";
  element_.setAttribute("aria-rowindex", String(place + 2));
  element_.setAttribute("aria-selected", String(place === selected));
  element_.classList.toggle("stale", state.healths[row.store]?.reachable === false);
  columns.forEach((c, i) => {
    const cell = element_.children[i];
    const text = c.text(row);
    if (cell.textContent !== text) cell.textContent = text;
    if (c.id === "name") cell.title = text;
  });
  element_.children[2].classList.toggle("bad", Boolean(row.lock.error));
}

function draw() {
  if (grid.offsetParent === null) return;
  const height = rowHeight();
  const first = Math.max(0, Math.floor(grid.scrollTop / height) - 3);
  const count = Math.min(shown.length - first, Math.ceil(grid.clientHeight / height) + 6);
  for (let i = 0; i < count; ++i) fill(poolRow(i), shown[first + i], first + i, height);
  for (let i = Math.max(count, 0); i < pool.length; ++i) pool[i].hidden = true;
  if (selected >= 0) grid.setAttribute("aria-activedescendant", "row-" + selected);
  else grid.removeAttribute("aria-activedescendant");
}

function open(place) {
  const row = shown[place];
  if (row) location.hash = lockAddress(row.store, row.name);
}

function select(place) {
  if (!shown.length) return;
  selected = Math.min(Math.max(place, 0), shown.length - 1);
  selectedKey = shown[selected].key;
  const height = rowHeight();
  const head = byId("columns").offsetHeight;
  const top = selected * height;
  if (top < grid.scrollTop) grid.scrollTop = top;
  if (top + height + head > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + height + head - grid.clientHeight;
  draw();
}

function onKey(e) {
  const page = Math.floor(grid.clientHeight / rowHeight()) - 1;
  const places = { ArrowDown: selected + 1, j: selected + 1, ArrowUp: selected - 1, k: selected - 1,
    PageDown: selected + page, PageUp: selected - page, Home: 0, End: shown.length - 1 };
  if (e.key === "Enter") open(selected);
  else if (e.key in places) select(places[e.key]);
  else return;
  e.preventDefault();
}

// Rows arrive in many pieces at once. They are drawn a few times a second, because people see no more changes than that.
let due = null;
function changed() {
  if (due !== null) return;
  due = setTimeout(() => {
    due = null;
    offerKinds();
    choose();
  }, state.rows.size > 2000 ? 300 : 30);
}

function offer(select_, values) {
  const known = new Set([...select_.options].map((o) => o.value));
  for (const [value, text] of values) if (!known.has(value)) select_.append(element("option", { value, textContent: text }));
}
function offerKinds() {
  const kinds = new Set();
  for (const row of state.rows.values()) kinds.add(row.kind);
  offer(filters.kind, [...kinds].sort().map((k) => [k, k]));
}

function sort(column, down) {
  sorted = { column, down };
  const heads = byId("columns").children;
  columns.forEach((c, i) => {
    if (c === column) heads[i].setAttribute("aria-sort", down ? "descending" : "ascending");
    else heads[i].removeAttribute("aria-sort");
  });
  sortBy.value = column.id;
  choose();
}

function makeHead() {
  byId("columns").replaceChildren(...columns.map((c) => {
    const button = element("button", { type: "button", textContent: c.title });
    const cell = element("span", { className: c.id + (c.number ? " number" : ""), role: "columnheader" }, button);
    button.addEventListener("click", () => sort(c, sorted.column === c && !sorted.down));
    return cell;
  }));
  sortBy.append(...columns.map((c) => element("option", { value: c.id, textContent: "by " + c.title.toLowerCase() })));
  sortBy.addEventListener("input", () => sort(columns.find((c) => c.id === sortBy.value), false));
}

export function startTable() {
  makeHead();
  grid.addEventListener("scroll", draw, { passive: true });
  grid.addEventListener("keydown", onKey);
  for (const input of [search, ...Object.values(filters)]) input.addEventListener("input", choose);
  addEventListener("resize", choose);
  on("rows", changed);
  on("connection", () => {
    // A restarted server may have other stores.
    const [all] = filters.store.options;
    const chosen = filters.store.value;
    filters.store.replaceChildren(all, ...state.stores.map((url, i) => element("option", { value: String(i), textContent: visible(url) })));
    filters.store.value = Number(chosen) < state.stores.length ? chosen : "";
    filters.store.hidden = state.stores.length < 2;
  });
  setInterval(draw, 1000);
}

export function showTable() {
  choose();
  // A search that was begun continues.
  if (document.activeElement !== search) grid.focus({ preventScroll: true });
}
export const focusSearch = () => search.focus();
