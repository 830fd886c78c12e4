// The graph of processes that wait for each other. A viewer looks for rings, so they come first.
import { element, drawn, visible, duration, processName, lockAddress, ask } from "./text.js";
import { state, on } from "./state.js";

const section = document.getElementById("waits");
const count = document.getElementById("ring-count");
const mostDrawn = 60;
const mostListed = 500;

const lockLink = (store, lock) => (lock
  ? element("a", { href: lockAddress(store, lock) }, visible(lock)) : "the end of its command");

function ringText(store, said, ring) {
  const steps = ring.map((p, i) => {
    const next = ring[(i + 1) % ring.length];
    const wait = said.waits.find((w) => w.from === p && w.to === next && w.in_ring);
    return element("li", {}, element("b", {}, processName(said.processes[p])), " waits for ", lockLink(store, wait?.lock),
      wait?.lock ? ", held by " : ", ", element("b", {}, processName(said.processes[next])));
  });
  return element("div", { className: "ring", role: "alert" },
    element("b", { className: "bad" }, "A ring: each of these waits for the next one."), element("ol", {}, steps),
    element("p", { className: "quiet" }, "The store does not tell the threads of a process apart: if another thread " +
      "holds the lock than the one that waits, the ring may end by itself."));
}

/** The column of each process: it is to the left of those that wait for it. In a ring, the process that is found first is leftmost. */
function columnsOf(said) {
  const waitsFor = said.processes.map(() => []);
  for (const w of said.waits) if (w.from !== w.to) waitsFor[w.from].push(w.to);
  const depth = new Array(said.processes.length).fill(-1);
  const visit = (p, path) => {
    if (depth[p] >= 0) return depth[p];
    if (path.has(p) || path.size > 500) return 0;
    path.add(p);
    let deepest = -1;
    for (const to of waitsFor[p]) deepest = Math.max(deepest, visit(to, path));
    path.delete(p);
    return (depth[p] = deepest + 1);
  };
  said.processes.forEach((_, p) => visit(p, new Set()));
  const least = Math.min(...depth); // if all processes are in rings, the first column would be empty
  return depth.map((d) => d - least);
}

function picture(said) {
  const inRing = new Set(said.rings.flat());
  const chosen = said.processes.map((_, p) => p)
    .sort((a, b) => inRing.has(b) - inRing.has(a) || a - b).slice(0, mostDrawn);
  const depth = columnsOf(said);
  const filled = new Map();
  const at = new Map();
  for (const p of chosen) {
    const row = filled.get(depth[p]) ?? 0;
    filled.set(depth[p], row + 1);
    at.set(p, { x: 10 + depth[p] * 260, y: 10 + row * 64 });
  }
  const width = 180 + 260 * Math.max(0, ...filled.keys());
  const height = 64 * Math.max(1, ...filled.values()) + 40;
  const svg = drawn("svg", { viewBox: "0 0 " + width + " " + height, width: String(width), role: "img",
    "aria-label": "Processes; an arrow goes from one that waits to one that holds" });
  svg.append(drawn("defs", {}, drawn("marker", { id: "tip", viewBox: "0 0 8 8", refX: "7", refY: "4", markerWidth: "7",
    markerHeight: "7", orient: "auto-start-reverse" }, drawn("path", { d: "M0 0 8 4 0 8z", fill: "#818b98" }))));
  for (const w of said.waits) {
    const a = at.get(w.from), b = at.get(w.to);
    if (!a || !b || w.from === w.to) continue;
    const back = depth[w.from] <= depth[w.to];
    const [x1, y1, x2, y2] = back ? [a.x + 80, a.y + 42, b.x + 80, b.y + 42] : [a.x, a.y + 20, b.x + 160, b.y + 20];
    const path = back ? "M" + x1 + " " + y1 + " C" + x1 + " " + (y1 + 30) + " " + x2 + " " + (y2 + 30) + " " + x2 + " " + y2
      : "M" + x1 + " " + y1 + " C" + (x1 - 50) + " " + y1 + " " + (x2 + 50) + " " + y2 + " " + x2 + " " + y2;
    const label = drawn("text", { x: (x1 + x2) / 2, y: (y1 + y2) / 2 + (back ? 20 : -4), class: "label", "text-anchor": "middle" });
    label.textContent = visible(w.lock ?? "").slice(0, 16);
    svg.append(drawn("path", { d: path, "marker-end": "url(#tip)",
      class: "edge" + (w.in_ring ? " bad" : "") + (w.must ? "" : " maybe") }), label);
  }
  for (const [p, { x, y }] of at) {
    const name = drawn("text", { x: x + 80, y: y + 18, "text-anchor": "middle" });
    name.textContent = processName(said.processes[p]).slice(0, 22);
    const program = drawn("text", { x: x + 80, y: y + 33, class: "label", "text-anchor": "middle" });
    program.textContent = visible(said.processes[p].program ?? "").slice(0, 24);
    svg.append(drawn("rect", { x, y, width: 160, height: 42, rx: 6, class: inRing.has(p) ? "box bad" : "box" }), name, program);
  }
  return element("div", { className: "wide" }, svg,
    said.processes.length > mostDrawn
      ? element("p", { className: "quiet" }, mostDrawn + " of " + said.processes.length + " processes are drawn") : null);
}

function list(store, said) {
  const rows = said.waits.slice(0, mostListed).map((w) => element("tr", {},
    element("td", { className: w.in_ring ? "bad" : "" }, processName(said.processes[w.from])),
    element("td", {}, lockLink(store, w.lock)),
    element("td", {}, processName(said.processes[w.to])),
    element("td", {}, w.waiting_seconds === undefined ? "" : duration(w.waiting_seconds * 1000))));
  const others = said.waits.length - rows.length + said.waits_left_out;
  return element("div", { className: "wide" }, element("table", {},
    element("thead", {}, element("tr", {}, ...["Waiter", "Lock", "Held by", "Waiting for"].map((t) => element("th", {}, t)))),
    element("tbody", {}, rows)),
    others > 0 ? element("p", { className: "quiet" }, others + " more waits are not listed") : null);
}

function storePart(store, said) {
  const part = element("div", {}, state.stores.length > 1 ? element("h2", {}, visible(state.stores[store])) : null);
  if (said.error) part.append(element("p", { className: "bad", role: "alert" }, visible(said.error)));
  else if (said.waits.length) part.append(...said.rings.map((r) => ringText(store, said, r)), picture(said), list(store, said));
  else part.append(element("p", { className: "quiet" }, "No process waits for another."));
  return part;
}

let loading = false;
async function load() {
  if (loading) return;
  loading = true;
  try {
    const all = await Promise.all(state.stores.map((_, i) =>
      ask("/api/graph?store=" + i).catch((e) => ({ error: String(e.message), rings: [] }))));
    const rings = all.reduce((n, said) => n + said.rings.length, 0);
    count.hidden = rings === 0;
    count.textContent = rings + (rings === 1 ? " ring" : " rings");
    if (!section.hidden) section.replaceChildren(...all.map((said, i) => storePart(i, said)));
  } finally {
    loading = false;
  }
}

export function startGraph() {
  let stale = false;
  on("rows", () => { stale = true; });
  setInterval(() => {
    if (!stale && section.hidden) return;
    stale = false;
    load();
  }, 1000);
}
export const showGraph = load;
