// One lock: its holders, the queue, what happened while it was viewed, and how long it took.
import { element, drawn, visible, duration, processName, deathOf, ask, bucketCells, bucketHeads } from "./text.js";
import { state, on, now, keyOf } from "./state.js";

const section = document.getElementById("lock");
const dialog = document.getElementById("unlock");
let current = null; // {store, name}
let token = "";

const since = (text) => (text ? duration(now() - Date.parse(text)) : "");
const cells = (texts, tag = "td") => texts.map((t) => element(tag, {}, t instanceof Node ? t : String(t ?? "")));

function table(heads, rows) {
  return element("div", { className: "wide" }, element("table", {},
    element("thead", {}, element("tr", {}, cells(heads, "th"))),
    element("tbody", {}, rows.map((r) => element("tr", {}, cells(r))))));
}

function holders(said) {
  if (!said.holders.length) return element("p", { className: "quiet" }, "No holder.");
  const rows = said.holders.map((h) => {
    const row = [visible(h.owner), processName(h), visible(h.program), visible(h.reason), since(h.since),
      h.died ? "died" : duration(Date.parse(h.expires_at) - now()), h.weight, h.fence ?? ""];
    if (state.unlocks) row.push(h.owner ? unlockButton(h) : "");
    return row;
  });
  const heads = ["Owner", "Process", "Program", "Reason", "Held for", "Lease left", "Weight", "Fence"];
  if (state.unlocks) heads.push("");
  return table(heads, rows);
}

function queue(said) {
  if (!said.waiters.length) return element("p", { className: "quiet" }, "No waiters.");
  let place = 0; // the dead are passed over
  return table(["Place", "Owner", "Process", "Program", "Reason", "Waiting for", "Weight"], said.waiters.map((w) =>
    [w.died ? "died" : ++place, visible(w.owner), processName(w), visible(w.program), visible(w.reason), since(w.since), w.weight]));
}

function buckets(said) {
  if (said.kind !== "rate_limiter") return null;
  const rows = said.buckets ?? [];
  return element("div", { id: "buckets" }, element("h2", {}, "Buckets that are not full"),
    rows.length ? table(bucketHeads, rows.map(bucketCells))
      : element("p", { className: "quiet" }, "Not queried yet, or all of them are full."));
}

/** Each hold as a bar, the newest owners below one another. */
function timeline(said) {
  const holds = [];
  const ends = new Map();
  for (const c of said.changes) {
    const id = c.owner + " " + c.fence;
    if (c.what === "given_up") ends.set(id, c);
  }
  const add = (who, from, to) => holds.push({ who, from, to, label: processName(who) });
  for (const h of said.holders) add(h, Date.parse(h.since), now());
  for (const [, c] of ends) add(c, Date.parse(c.time) - (c.held_seconds ?? 0) * 1000, Date.parse(c.time));
  const shown = holds.filter((h) => Number.isFinite(h.from)).slice(0, 12);
  if (!shown.length) return element("p", { className: "quiet" }, "No hold has been seen yet.");
  const first = Math.min(...shown.map((h) => h.from)), last = now();
  const x = (t) => 150 + (440 * (t - first)) / Math.max(last - first, 1);
  const picture = drawn("svg", { viewBox: "0 0 600 " + (shown.length * 18 + 20), width: "600", role: "img",
    "aria-label": "Holds over time" });
  shown.forEach((h, i) => {
    const bar = { x: x(h.from), y: i * 18 + 3, width: Math.max(x(h.to) - x(h.from), 2), height: 12,
      class: i < said.holders.length ? "hold" : "hold other" };
    const hint = drawn("title", {});
    hint.textContent = h.label + ", " + duration(h.to - h.from);
    const label = drawn("text", { x: 144, y: i * 18 + 13, "text-anchor": "end" });
    label.textContent = h.label.slice(0, 22);
    picture.append(label, drawn("rect", bar, hint));
  });
  const from = drawn("text", { x: 150, y: shown.length * 18 + 14, class: "label" });
  from.textContent = duration(last - first) + " ago";
  const to = drawn("text", { x: 590, y: shown.length * 18 + 14, class: "label", "text-anchor": "end" });
  to.textContent = "now";
  picture.append(from, to);
  return element("div", { className: "wide" }, picture);
}

function changes(said) {
  if (!said.changes.length) return null;
  return table(["When", "What", "Process", "Reason", "Fence", "After"], said.changes.slice(0, 50).map((c) =>
    [since(c.time) + " ago", c.what === "taken" ? "taken" : "given up", processName(c), visible(c.reason), c.fence ?? "",
      c.what === "taken"
        ? (c.waited_seconds === undefined ? "" : duration(c.waited_seconds * 1000) + " of waiting")
        : (c.held_seconds === undefined ? "" : duration(c.held_seconds * 1000) + " of holding")]));
}

function histogram(title, said) {
  const most = Math.max(1, ...said.buckets.map((b) => b.count));
  const bars = said.buckets.flatMap((b, i) => {
    const bar = element("div", { className: "bar" });
    bar.style.width = (100 * b.count) / most + "%";
    const last = said.buckets[i - 1]?.up_to_seconds ?? 0;
    const name = b.up_to_seconds ? "≤ " + duration(b.up_to_seconds * 1000) : "> " + duration(last * 1000);
    return [element("span", {}, name), bar, element("span", {}, String(b.count || ""))];
  });
  const mean = said.count ? ", " + duration((1000 * said.sum_seconds) / said.count) + " on average" : "";
  return element("div", {}, element("h2", {}, title), element("p", { className: "quiet" }, said.count + " seen" + mean),
    element("div", { className: "bars" }, bars));
}

function facts(said) {
  if (said.error) return element("p", { className: "bad" }, visible(said.error));
  if (!said.kind) return element("p", { className: "quiet" }, "Not in use now.");
  const parts = [said.kind];
  if (said.capacity > 1) parts.push(said.remaining + " of " + said.capacity + " left");
  if (said.last_fence) parts.push("last fence " + said.last_fence);
  const death = deathOf(said.holders ?? []);
  if (death) parts.push(death);
  return element("p", {}, parts.join(" · "));
}

/** For a store that is away, the last known state is shown. */
function age(said) {
  if (state.healths[current.store]?.reachable !== false) return "";
  return element("p", { className: "bad", role: "alert" },
    "The store does not answer. This was its state " + duration(said.age_seconds * 1000) + " ago.");
}

function draw(said) {
  const round = state.healths[current.store]?.round_seconds;
  const focused = document.activeElement?.dataset?.owner;
  section.replaceChildren(
    element("h2", { id: "lock-name" }, visible(current.name)),
    element("p", { className: "quiet" }, visible(state.stores[current.store])),
    facts(said), age(said), buckets(said) ?? "",
    element("h2", {}, "Holders"), holders({ holders: [], ...said }),
    element("h2", {}, "Queue"), queue({ waiters: [], ...said }),
    element("h2", {}, "Hand-overs"),
    element("p", { className: "quiet" }, "What holdfast serve has seen since its start. A hold that began and ended between two queries " +
      "is not in it" + (round ? "; a round over all names took " + duration(round * 1000) + "." : ".")),
    timeline({ holders: [], ...said }), changes(said) ?? "",
    element("div", { className: "columns" }, histogram("Held", said.held), histogram("Waited", said.waited)));
  if (focused) section.querySelector('[data-owner="' + CSS.escape(focused) + '"]')?.focus();
}

let loading = null; // the present request: an older answer must not be drawn over a newer one
async function load() {
  const asked = current;
  if (!asked || section.hidden || loading === asked) return;
  loading = asked;
  try {
    const said = await ask("/api/lock?store=" + asked.store + "&lock=" + encodeURIComponent(asked.name));
    if (asked === current) draw(said);
  } catch (e) {
    if (asked === current) section.replaceChildren(element("p", { className: "bad", role: "alert" }, String(e.message)));
  } finally {
    if (loading === asked) loading = null;
  }
}

function unlockButton(holder) {
  const button = element("button", { type: "button" }, "Unlock …");
  button.dataset.owner = holder.owner ?? "";
  button.addEventListener("click", () => openDialog(holder));
  return button;
}

const field = (id) => document.getElementById("unlock-" + id);

function openDialog(holder) {
  field("what").textContent = visible(current.name) + " is held by " + processName(holder) +
    (holder.reason ? " (" + visible(holder.reason) + ")" : "") + ".";
  field("trouble").textContent = "";
  field("token").value = token;
  dialog.holder = holder;
  dialog.lock = { store: current.store, name: current.name };
  dialog.showModal();
  (token ? field("no") : field("token")).focus();
}

async function unlock() {
  token = field("token").value;
  const what = { lock: dialog.lock.name, owner: dialog.holder.owner, reason: field("reason").value };
  try {
    await ask("/api/unlock?store=" + dialog.lock.store,
      { method: "POST", headers: { Authorization: "Bearer " + token }, body: JSON.stringify(what) });
    dialog.close();
    load();
  } catch (e) {
    field("trouble").textContent = String(e.message);
  }
}

export function startLock() {
  field("no").addEventListener("click", () => dialog.close());
  field("yes").addEventListener("click", unlock);
  for (const input of [field("token"), field("reason")])
    input.addEventListener("keydown", (e) => { if (e.key === "Enter") unlock(); });
  let before = null;
  on("rows", () => {
    if (!current) return;
    const row = state.rows.get(keyOf(current.store, current.name));
    if (row !== before) load();
    before = row;
  });
  setInterval(load, 1000);
}

export function showLock(store, name) {
  current = { store, name };
  section.replaceChildren(element("p", { className: "quiet" }, "…"));
  load();
}
export const hideLock = () => { current = null; };
