// The server's data: the rows of all stores, and the stores' health. One stream for the page.

export const state = {
  stores: [],
  unlocks: false,
  rows: new Map(), // by keyOf
  healths: [],
  connected: false,
  behind: 0, // the server's clock less this one's, in milliseconds
};

const listeners = new Map();

/** what: "rows", "health" or "connection". */
export function on(what, listener) {
  if (!listeners.has(what)) listeners.set(what, []);
  listeners.get(what).push(listener);
}
function tell(what) {
  for (const listener of listeners.get(what) ?? []) listener();
}

export const keyOf = (store, lock) => store + "\n" + lock;

/** The server's time. */
export const now = () => Date.now() + state.behind;

const timeOf = (text) => (text ? Date.parse(text) : NaN);

/** The values for sorting and searching are computed once, when the row arrives. */
function rowOf(store, lock) {
  const holders = lock.holders ?? [];
  const waiters = lock.waiters ?? [];
  const since = waiters.map((w) => timeOf(w.since)).filter(Number.isFinite);
  const first = holders[0];
  return {
    store, lock, holders, waiters,
    key: keyOf(store, lock.lock),
    name: lock.lock,
    kind: lock.error ? "unreadable" : lock.kind,
    heldSince: first ? timeOf(first.since) : NaN,
    leaseEnd: first ? timeOf(first.expires_at) : NaN,
    oldestWait: since.length ? Math.min(...since) : NaN,
    text: [lock.lock, lock.kind, lock.error ?? ""]
      .concat(holders.concat(waiters).flatMap((p) => [p.host, p.pid, p.program, p.reason, p.owner]))
      .join(" ").toLowerCase(),
  };
}

function takeRows(said) {
  for (const lock of said.locks) state.rows.set(keyOf(said.store, lock.lock), rowOf(said.store, lock));
  for (const name of said.gone) state.rows.delete(keyOf(said.store, name));
  tell("rows");
}

function forget(store) {
  for (const [key, row] of state.rows) if (row.store === store) state.rows.delete(key);
  tell("rows");
}

function greet(said) {
  state.stores = said.stores;
  state.unlocks = said.unlocks;
  state.behind = Date.parse(said.time) - Date.now();
  state.rows.clear();
  state.healths = []; // of the server before: one that has just started may not have queried its
                      // stores yet
  state.connected = true;
  tell("connection");
  tell("rows");
}

let stream = null;

// A browser has few connections to one server: a hidden tab does not keep one.
export function connect() {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return open();
    stream?.close();
    stream = null;
    state.connected = false; // and no message is shown: it is no failure
  });
  open();
}

function open() {
  if (stream || document.hidden) return;
  const mine = stream = new EventSource("/api/events");
  const listen = (event, does) => stream.addEventListener(event, (e) => does(JSON.parse(e.data)));
  listen("hello", greet);
  listen("rows", takeRows);
  listen("forget", (said) => forget(said.store));
  listen("health", (said) => {
    state.healths[said.store] = said;
    tell("health");
  });
  stream.addEventListener("error", () => {
    state.connected = false;
    tell("connection");
    // After a refusal, the browser itself does not connect again.
    if (mine.readyState !== EventSource.CLOSED || mine !== stream) return;
    stream = null;
    setTimeout(open, 2000);
  });
}
