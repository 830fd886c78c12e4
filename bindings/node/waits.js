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
// How long it has a thread of the pool, which all JavaScript threads share: briefly where many may listen, and where only losses are waited
// for. A worker thread that is terminated waits for no longer than this.
const LISTEN_NS = 1e9, BRIEFLY_NS = 5e7;
const AGAIN_MS = 100;

let queue = 0;  // while something is waited for
let lastTag = 0;
const waiting = new Map();  // tag -> {resolve, reject, isCall}
let calls = 0;  // of them
let pause = null;  // a timer, between two times of listening

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
    if (queue !== on && (failed || code !== 0)) return;  // it was closed: nobody waits any more
    if (code === TIMED_OUT) return listenAgain(on);
    if (code === OVERLOADED) return setTimeout(() => { if (queue === on) listen(on); }, AGAIN_MS);  // the event is still there
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

/** Where only losses are waited for, a pause that keeps nothing alive lets a program end that has nothing else to do. */
function listenAgain(on) {
  if (calls > 0) return listen(on);
  pause = setTimeout(endPause, 0, on).unref();
}

function endPause(on) {
  clearTimeout(pause);
  pause = null;
  try {
    listen(on);
  } catch (why) {
    failAll(why);  // nobody would tell them
  }
}

function failAll(why) {
  const all = [...waiting.values()];
  endWaits();
  for (const one of all) one.reject(why);
}

/** A call that is under way keeps the program from ending, so the queue goes when nothing is expected. */
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

const stops = new Set();  // of the calls that wait: some would go on without their handles

/** Nothing is expected any more. What is granted from now on is given back. */
function endWaits() {
  for (const stop of stops) abi.functions.stop_request(stop, null);
  waiting.clear();
  calls = 0;
  forget();
}

/** Calls `begin(queue, tag)`; the event that comes with the tag: how a call has ended, or that a lease was lost. */
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

/** In ms. */
function limitOf(timeout) {
  if (isEndless(timeout)) return Infinity;
  const limit = Math.max(timeout, 0);
  return limit * 1e6 >= 2 ** 63 ? Infinity : limit;
}

function nanoseconds(timeout) {
  const limit = limitOf(timeout);
  return limit === Infinity ? NO_LIMIT : BigInt(Math.round(limit * 1e6));
}

/** Calls `wait` with the handle of a stop, which the signal requests, if there is one, and the end of the waits. */
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

/** A call of a method that waits: `begin(how)` with a holdfast_wait. The signal of the options calls it off. */
async function outcome(method, begin, wait) {
  const {timeout, signal} = given.wait(wait, `${method}: wait`);
  return withStop(signal, (stop) => expect((to, tag) =>
    begin(abi.sized('wait', {timeout_ns: nanoseconds(timeout), stop, queue: to, tag})), true).event);
}

module.exports = {isEndless, expect, forget, endWaits, outcome};
