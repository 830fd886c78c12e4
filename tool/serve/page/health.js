// How the stores answer, and the cost of querying them; the busiest names; elections and limits.
import { element, visible, duration, processName, lockAddress, ask, bucketCells, bucketHeads } from "./text.js";
import { state, on, now } from "./state.js";

const stores = document.getElementById("stores");
const elections = document.getElementById("elections");
const percent = (share) => (100 * share).toFixed(share < 0.1 ? 2 : 0) + " %";
let busiest = [];
const lowest = new Map(); // by the key of a limiter: its emptiest bucket, and how many are not full
const limitersAsked = 20;

function facts(pairs) {
  return element("dl", {}, pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function card(h, i) {
  const ms = h.round_trip_seconds * 1000;
  return element("div", { className: "card" },
    element("h2", {}, visible(state.stores[i])),
    h.reachable ? element("p", { className: "good" }, "answers, for " + duration(now() - Date.parse(h.since)))
      : element("p", { className: "bad", role: "alert" }, "does not answer" +
        (h.since ? " for " + duration(now() - Date.parse(h.since)) : "") + (h.error ? ": " + visible(h.error) : "")),
    h.note ? element("p", {}, visible(h.note)) : null,
    facts([["Round trip", ms < 10 ? ms.toFixed(3) + " ms" : duration(ms)], ["Commands sent", String(h.commands)],
      ["Errors", String(h.errors)], ["Share of the time for queries, last minute", percent(h.used_share)],
      ["… allowed now", percent(h.allowed_share)],
      ["A round over all names took", h.round_seconds ? duration(h.round_seconds * 1000) : "not done yet"]]),
    busy(busiest[i], i));
}

function busy(said, i) {
  if (!said?.locks.length) return null;
  return element("div", {}, element("h2", {}, "Busiest names"),
    element("table", {}, element("tbody", {}, said.locks.map((l) => element("tr", {},
      element("td", {}, element("a", { href: lockAddress(i, l.lock) }, visible(l.lock))),
      element("td", { className: "number" }, "taken " + (l.taken === 1 ? "once" : l.taken + " times")))))));
}

function drawStores() {
  if (stores.hidden) return;
  stores.replaceChildren(element("h2", {}, "Stores"),
    element("div", { className: "cards" }, state.healths.map(card)));
}

function rowsOf(kind) {
  return [...state.rows.values()].filter((r) => r.kind === kind).sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, 500);
}

const nameCell = (r) => element("td", {}, element("a", { href: lockAddress(r.store, r.name) }, visible(r.name)));

function drawElections() {
  if (elections.hidden) return;
  const led = rowsOf("election").map((r) => {
    const leads = r.holders.find((h) => !h.died);
    const waiting = r.waiters.filter((w) => !w.died).length;
    return element("tr", {}, nameCell(r), element("td", {}, leads ? processName(leads) : "nobody"),
      element("td", {}, visible(leads?.reason)), element("td", {}, leads?.fence ?? ""),
      element("td", {}, leads ? duration(now() - r.heldSince) : ""), element("td", {}, String(waiting)));
  });
  const limits = rowsOf("rate_limiter").map((r) => {
    const known = lowest.get(r.key);
    return element("tr", {}, nameCell(r), element("td", {}, String(known?.buckets.length || "")),
      ...(known?.buckets.length ? bucketCells(known.buckets[0]) : []).map((c) => element("td", {}, c)));
  });
  const table = (heads, rows) => element("div", { className: "wide" }, element("table", {},
    element("thead", {}, element("tr", {}, heads.map((h) => element("th", {}, h)))), element("tbody", {}, rows)));
  elections.replaceChildren(element("h2", {}, "Elections"),
    led.length ? table(["Election", "Leader", "Note", "Term", "Leads for", "Candidates waiting"], led)
      : element("p", { className: "quiet" }, "No election is in use."),
    element("h2", {}, "Rate limits"),
    limits.length ? table(["Limiter", "Not full", ...bucketHeads], limits)
      : element("p", { className: "quiet" }, "No rate limit is in use: a limiter with full buckets leaves nothing in the store."));
}

export async function showStores() {
  drawStores();
  // The stream reports why a store does not answer.
  busiest = await Promise.all(state.stores.map((_, i) => ask("/api/busiest?store=" + i).catch(() => null)));
  drawStores();
}

/** The buckets of the first limiters: the server queries them more often while a page requests them. */
export async function showElections() {
  drawElections();
  if (elections.hidden) return;
  await Promise.all(rowsOf("rate_limiter").slice(0, limitersAsked).map(async (r) => {
    try {
      const said = await ask("/api/lock?store=" + r.store + "&lock=" + encodeURIComponent(r.name));
      lowest.set(r.key, { buckets: said.buckets ?? [] });
    } catch {
      lowest.delete(r.key); // the stream reports the error
    }
  }));
  drawElections();
}

export function startHealth() {
  let beats = 0;
  on("health", () => {
    if (beats++ % 5 === 0 && !stores.hidden) showStores();
    else drawStores();
    if (beats % 3 === 0) showElections();
    else drawElections();
  });
}
