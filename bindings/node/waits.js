'use strict';
// Waiting: the library leaves outcomes in a queue, and one call on a thread of Node's pool takes them out. No thread of the
// library ever calls into JavaScript.
const abi = require('./abi.js');

const LEASE_LOST = 2;
const NO_LIMIT = -1;

let queue = 0;  // while something is waited for
let lastTag = 0;
const waiting = new Map();  // tag -> {resolve, reject}

function openQueue() {
  const there = [0];
  abi.call('queue_open', there, null);
  return there[0];
}

function listen(on) {
  const event = abi.sized('event');
  const why = abi.newWhy();
  abi.functions.queue_next.async(on, NO_LIMIT, event, why, (failed, code) => {
    if (failed || code !== 0) return;  // the queue was closed: nobody waits any more
    const one = waiting.get(Number(event.tag));
    forget(Number(event.tag));
    if (!one) {
      if (event.kind !== LEASE_LOST && event.lease) abi.functions.close(event.lease, null);
    } else if (event.kind !== LEASE_LOST && event.code !== 0) {
      one.reject(abi.errorOf(event.code, why));
    } else {
      one.resolve(event);
    }
    if (queue === on) listen(on);
  });
}

/** A call that is under way keeps the program from ending, so the queue goes when nothing is expected. */
function forget(tag) {
  waiting.delete(tag);
  if (waiting.size > 0 || queue === 0) return;
  const closed = queue;
  queue = 0;
  abi.functions.close(closed, null);
}

/** Calls `begin(queue, tag)`; the event that comes with the tag. */
function expect(begin) {
  const tag = ++lastTag;
  return {
    tag,
    event: new Promise((resolve, reject) => {
      waiting.set(tag, {resolve, reject});
      try {
        const opened = queue === 0;
        if (opened) queue = openQueue();
        begin(queue, tag);
        if (opened) listen(queue);
      } catch (why) {
        forget(tag);
        reject(why);
      }
    }),
  };
}

function nanoseconds(timeout) {
  if (timeout === undefined || timeout === null || timeout === Infinity) return NO_LIMIT;
  return BigInt(Math.round(Math.max(Number(timeout), 0) * 1e6));
}

/** Calls `wait` with the handle of a stop, which the signal requests; 0 without a signal. */
async function withStop(signal, wait) {
  if (!signal) return wait(0);
  const stop = abi.made('stop_open');
  const request = () => abi.call('stop_request', stop);
  try {
    if (signal.aborted) request();
    signal.addEventListener('abort', request);
    return await wait(stop);
  } finally {
    signal.removeEventListener('abort', request);
    abi.functions.close(stop, null);
  }
}

/** A call that waits: `begin(how)` with a holdfast_wait. The signal of the options calls it off. */
function outcome(begin, {timeout, signal} = {}) {
  return withStop(signal, (stop) => expect((to, tag) =>
    begin(abi.sized('wait', {timeout_ns: nanoseconds(timeout), stop, queue: to, tag}))).event);
}

/** For calls that have no form without a thread: `start(how)` gives a promise. */
function aside(start, {timeout, signal} = {}) {
  return withStop(signal, (stop) => start(abi.sized('wait', {timeout_ns: nanoseconds(timeout), stop})));
}

module.exports = {expect, forget, outcome, aside};
