// Joins the parts: which view is shown, the line at the top, the keys.
import { state, on, connect } from "./state.js";
import { startTable, showTable, focusSearch } from "./table.js";
import { startLock, showLock, hideLock } from "./lock.js";
import { startGraph, showGraph } from "./graph.js";
import { startHealth, showStores, showElections } from "./health.js";
import { visible } from "./text.js";

const views = { locks: showTable, waits: showGraph, elections: showElections, stores: showStores };
const status = document.getElementById("status");
const trouble = document.getElementById("trouble");

function show(view) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== view;
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === "#/" + view;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function route() {
  const [view, store, name] = location.hash.slice(2).split("/");
  if (view === "lock" && name !== undefined) {
    show("lock");
    let lock = "";
    try { lock = decodeURIComponent(name); } catch { lock = name; }
    return showLock(Number(store), lock);
  }
  hideLock();
  const known = Object.hasOwn(views, view) ? view : "locks";
  show(known);
  views[known]();
}

function say() {
  const away = state.healths.filter((h) => !h.reachable);
  const total = state.stores.length;
  status.textContent = state.connected ? (total === 1 ? visible(state.stores[0]) : total + " stores") : "";
  const problems = [];
  if (!state.connected) problems.push("The connection to holdfast serve is lost, and this page tries again. What it shows may be old.");
  for (const h of away) problems.push(visible(h.url) + " does not answer: " + visible(h.error ?? ""));
  for (const h of state.healths) if (h.reachable && h.note) problems.push(visible(h.note) + ".");
  trouble.hidden = problems.length === 0;
  trouble.textContent = problems.join(" ");
}

function onKey(e) {
  const typing = e.target.matches("input, select, textarea");
  if (e.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (typing) e.target.blur();
    location.hash = "#/locks";
  }
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  const places = { 1: "#/locks", 2: "#/waits", 3: "#/elections", 4: "#/stores" };
  if (e.key in places) location.hash = places[e.key];
  if (e.key === "/") {
    if (document.getElementById("locks").hidden) location.hash = "#/locks";
    show("locks");
    focusSearch();
    e.preventDefault();
  }
}

startTable();
startLock();
startGraph();
startHealth();
on("connection", () => {
  say();
  if (state.connected) route();
});
on("health", say);
addEventListener("hashchange", route);
addEventListener("keydown", onKey);
route();
connect();
