'use strict';
// Waiting: the library leaves outcomes in a queue, and one call on a thread of Node's pool takes them out. No thread of the
// library ever calls into JavaScript.
const {isMainThread} = require('node:worker_threads');
const abi = require('./abi.js');
const errors = require('./errors.js');
const given = require('./given.js');

const LEASE_LOST = 2;
const NO_LIMIT = -1;
const TIMED_OUT = errors.TimedOut.prototype.code, OVERLOADED = errors.Overloaded.prototype.code;
// How long one call occupies a thread of the pool, which all JavaScript threads share: briefly in worker threads, of which there may be
// many, and while only losses are waited for. The end of a terminated worker thread takes no longer than this.
const LISTEN_NS = 1e9, BRIEFLY_NS = 5e7;
const AGAIN_MS = 100;

let queue = 0;  // open while there are waits
let lastTag = 0;
const waiting = new Map();  // tag -> {resolve, reject, isCall}
let calls = 0;  // how many of them are calls
let pause = null;  // a timer, between two calls of listen()

function openQueue() {
  const there = [0];
  abi.call('queue_open', there, null);
  return there[0];
}

const grantedBy = (event) => event.kind === LEASE_LOST ? 0 : event.lease;

function listen(on) {
  const there = abi.room('event'), decided = abi.room('decision');
  const told = () => abi.koffi.decode(there, abi.types.event);
  const length = isMainThread && calls > 0 ? LISTEN_NS : BRIEFLY_NS;
  abi.begin('queue_next_decision', [on, length, there, decided], () => grantedBy(told()), (failed, code, why) => {
    if (queue !== on && (failed || code !== 0)) return;  // the queue was closed: there are no waits
    if (code === TIMED_OUT) return listenAgain(on);
    if (code === OVERLOADED) return setTimeout(() => { if (queue === on) goOn(on); }, AGAIN_MS);  // the event stays in the queue
    if (failed || code !== 0) return failAll(failed ?? abi.errorOf(code, why));
    const event = told();
    const one = waiting.get(Number(event.tag));
    forget(Number(event.tag));
    if (!one) {
      if (grantedBy(event)) abi.functions.close(event.lease, null);
    } else if (event.kind !== LEASE_LOST && event.code !== 0) {
      one.reject(abi.errorOf(event.code, why));
    } else {
      one.resolve({...event, decision: () => abi.koffi.decode(decided, abi.types.decision)});
    }
    if (queue === on) listenAgain(on);
  });
}

/** If only losses are waited for, listens again after a pause. Its timer does not keep the program alive, so the program can end. */
function listenAgain(on) {
  if (calls > 0) return goOn(on);
  pause = setTimeout(endPause, 0, on).unref();
}

function endPause(on) {
  clearTimeout(pause);
  pause = null;
  goOn(on);
}

/** listen() in a callback, where an exception would end the program. */
function goOn(on) {
  try {
    listen(on);
  } catch (why) {
    failAll(why);  // otherwise the waits would never end
  }
}

function failAll(why) {
  const all = [...waiting.values()];
  endWaits();
  for (const one of all) one.reject(why);
}

/** Ends a wait. Closes the queue after the last one, because a call under way keeps the program alive. */
function forget(tag) {
  if (waiting.get(tag)?.isCall) --calls;
  waiting.delete(tag);
  if (waiting.size > 0 || queue === 0) return;
  clearTimeout(pause);
  pause = null;
  const closed = queue;
  queue = 0;
  abi.functions.close(closed, null);
}

const stops = new Set();  // of the waiting calls: some continue after their handles are closed

/** Ends all waits. Locks that are granted from now on are released. */
function endWaits() {
  for (const stop of stops) abi.functions.stop_request(stop, null);
  waiting.clear();
  calls = 0;
  forget();
}

/** Calls `begin(queue, tag)`. `event` resolves to the event with that tag: the end of a call, or the loss of a lease. */
function expect(begin, isCall) {
  const tag = ++lastTag;
  return {
    tag,
    event: new Promise((resolve, reject) => {
      waiting.set(tag, {resolve, reject, isCall});
      if (isCall) ++calls;
      try {
        const opened = queue === 0;
        if (opened) queue = openQueue();
        begin(queue, tag);
        if (opened) listen(queue);
        else if (pause && isCall) endPause(queue);
      } catch (why) {
        forget(tag);
        reject(why);
      }
    }),
  };
}

const isEndless = (timeout) => timeout === undefined || timeout === null || timeout === Infinity;

/** The timeout in ms. */
function limitOf(timeout) {
  if (isEndless(timeout)) return Infinity;
  const limit = Math.max(timeout, 0);
  return limit * 1e6 >= 2 ** 63 ? Infinity : limit;
}

function nanoseconds(timeout) {
  const limit = limitOf(timeout);
  return limit === Infinity ? NO_LIMIT : BigInt(Math.round(limit * 1e6));
}

/** Calls `wait` with the handle of a stop. The signal, if there is one, and endWaits() request that stop. */
async function withStop(signal, wait) {
  const stop = abi.made('stop_open');
  const request = () => abi.call('stop_request', stop);
  stops.add(stop);
  try {
    if (signal?.aborted) request();
    signal?.addEventListener('abort', request);
    return await wait(stop);
  } finally {
    signal?.removeEventListener('abort', request);
    stops.delete(stop);
    abi.functions.close(stop, null);
  }
}

/** Runs a call that waits: `begin(how)` gets a holdfast_wait. The signal of the options cancels the call. */
async function outcome(method, begin, wait) {
  const {timeout, signal} = given.wait(wait, `${method}: wait`);
  return withStop(signal, (stop) => expect((to, tag) =>
    begin(abi.sized('wait', {timeout_ns: nanoseconds(timeout), stop, queue: to, tag})), true).event);
}

module.exports = {isEndless, expect, forget, endWaits, outcome};
