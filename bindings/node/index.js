'use strict';
// Synchronization primitives across processes and machines. index.d.ts says what each does.
const {isMainThread} = require('node:worker_threads');
const abi = require('./abi.js');
const {byCode, ...errors} = require('./errors.js');
const given = require('./given.js');
const {isEndless, expect, forget, endWaits, outcome} = require('./waits.js');

Symbol.asyncDispose ??= Symbol('Symbol.asyncDispose');
Symbol.dispose ??= Symbol('Symbol.dispose');

const known = new Set();  // the open handles of this thread
const forgotten = new FinalizationRegistry(({handle, watch}) => {
  known.delete(handle);
  if (watch) {
    forget(watch.tag);
    const why = 'the lease was garbage-collected, and is given back: keep a reference to it for as long as its signal is used';
    watch.controller.abort(new errors.Lost(why, {leaseGone: true}));  // before the release: after it, another program can get the lock
  }
  abi.functions.close(handle, null);
});

/** Owns a handle of the library, until it is closed or this object is collected. */
class Handle {
  constructor(handle) {
    this._handle = handle;
    this._known = handle;  // kept after close(): the library then reports the error
    this._kept = {handle, watch: null};  // outlives this object
    if (handle !== 0) this._own();
  }

  _own() {
    this._handle = this._known;
    known.add(this._known);
    forgotten.register(this, this._kept, this);
  }

  close() {
    if (this._disown()) abi.functions.close(this._known, null);
  }

  _disown() {
    if (this._handle === 0) return false;
    known.delete(this._handle);
    this._handle = 0;
    forgotten.unregister(this);
    return true;
  }

  [Symbol.dispose]() {
    this.close();
  }
}

const STATES = {0: 'released', 1: 'held', 2: 'suspect', 3: 'lost'};

const lostLock = () => new errors.Lost('the lock was lost', {leaseGone: true});

/** Not a method, so that no closure refers to the lease. */
function watchFor(kept) {
  const controller = new AbortController();
  const {tag, event} = expect((to, tag) => abi.call('lease_watch', kept.handle, to, tag), false);
  event.then(() => controller.abort(lostLock()), (why) => {
    if (why instanceof errors.NotOwner) kept.watch = null;  // a wait for a condition uses the lease, and returns it later
    controller.abort(why);
  });
  return {controller, tag};
}

class Lease extends Handle {
  _waits = 0;  // how many waits for conditions use it
  _over = false;  // it was released or closed
  _failed = false;  // a wait for a condition failed

  _info() {
    const info = abi.sized('lease_info');
    abi.call('lease_info_of', this._known, info);
    return info;
  }

  get fence() {
    return BigInt(this._info().fence);
  }

  get fences() {
    for (let room = 64;;) {
      const there = Array(room).fill(0);
      const count = [room];
      try {
        abi.call('lease_fences', this._known, there, count);
        return there.slice(0, count[0]).map(BigInt);
      } catch (why) {
        if (!(why instanceof errors.InvalidArgument) || count[0] <= room) throw why;
        [room] = count;
      }
    }
  }

  get state() {
    return STATES[this._handle === 0 ? 0 : this._info().state];
  }

  get lost() {
    return this.state === 'lost';
  }

  get remaining() {
    return Number(this._info().remaining_ns) / 1e6;
  }

  get name() {
    return this._info().name;
  }

  get shortId() {
    return this._info().short_id;
  }

  get signal() {
    if (!this._kept.watch) {
      this._kept.watch = watchFor(this._kept);
      // The event loop would report the loss only later. While a wait for a condition uses the lease, the library refuses this query.
      if (this._waits === 0 && this.lost) this._kept.watch.controller.abort(lostLock());
    }
    return this._kept.watch.controller.signal;
  }

  check() {
    abi.call('lease_check', this._known);
  }

  async extend(length) {
    await abi.callAside('lease_extend', this, given.duration(length, 'Lease.extend: length', 1));
  }

  _disown() {
    this._over = true;
    if (this._kept.watch) forget(this._kept.watch.tag);
    return super._disown();
  }

  /** Ends the lease after a failed wait for a condition. The library has already closed it if the wait had begun. */
  _gone(why) {
    this._failed = true;
    this.close();
    this._kept.watch?.controller.abort(why);
  }

  async release() {
    if (this._waits > 0) throw new errors.NotOwner('a wait for a condition has the lease', {operation: 'release', leaseGone: true});
    const mine = super._disown();
    known.add(this._known);  // if the thread ends before the call has begun, the lease is released
    try {
      await abi.callAside('release', this, null);
      this._disown();
    } catch (why) {
      const changed = why instanceof errors.HoldfastError && !(why instanceof errors.NotOwner);
      if (changed) this._disown();
      else if (mine && !this._over) this._own();  // a wait for a condition came first, or the library was not called
      throw why;
    } finally {
      if (this._handle === 0) known.delete(this._known);
    }
  }

  async [Symbol.asyncDispose]() {
    if (this._handle !== 0) await this.release();
  }
}

class Lock extends Handle {
  constructor(handle, begin = (how, there) => ['acquire', this._known, how, there]) {
    super(handle);
    this._begin = begin;
  }

  async acquire(wait) {
    const {timeout, signal} = given.wait(wait, 'Lock.acquire: wait');
    // A free lock takes one call on a thread of the pool; a wait uses the queue. A call with a limit or a signal uses the queue, too,
    // because one try may last as long as the store's time-outs.
    const oneTry = timeout === 0;
    if (!signal && (oneTry || isEndless(timeout))) {
      const there = [0];
      try {
        await abi.callAside(...this._begin(abi.sized('wait'), there));
        return new Lease(there[0]);
      } catch (why) {
        if (oneTry || !(why instanceof errors.Busy || why instanceof errors.Unavailable)) throw why;
      }
    }
    return new Lease((await outcome('Lock.acquire', (how) => abi.call(...this._begin(how, null)), {timeout, signal})).lease);
  }

  async tryAcquire(wait) {
    const {timeout, signal} = given.wait(wait, 'Lock.tryAcquire: wait');
    try {
      return await this.acquire({timeout: timeout ?? 0, signal});
    } catch (why) {
      if (why instanceof errors.Busy || why instanceof errors.TimedOut) return null;
      throw why;
    }
  }

  async with(work, wait) {
    given.action(work, 'Lock.with: work');
    const lease = await this.acquire(wait);
    let result;
    try {
      result = await work(lease);
    } catch (why) {
      await lease.release().catch(() => {});  // an error of the work takes precedence
      throw why;
    }
    if (lease._handle !== 0 || lease._failed) await lease.release();
    return result;
  }

  _member() {
    return {lock: this._known, shared: 0, permits: 0};
  }
}

/** A part of another lock: its readers, or several of its permits. */
class Side extends Lock {
  constructor(of, begin, member) {
    super(0, begin);
    this._of = of;
    this._member = member;
  }
}

class SharedMutex extends Lock {
  shared() {
    return new Side(this, (how, there) => ['acquire_shared', this._known, how, there],
                    () => ({lock: this._known, shared: 1, permits: 0}));
  }

  downgrade(lease) {
    return abi.callAside('downgrade', this, lease);
  }

  async tryUpgrade(lease) {
    try {
      await abi.callAside('upgrade', this, lease);
      return true;
    } catch (why) {
      if (why instanceof errors.Busy) return false;
      throw why;
    }
  }
}

class Semaphore extends Lock {
  permits(count) {
    return new Side(this, (how, there) => ['acquire_permits', this._known, count, how, there],
                    () => ({lock: this._known, shared: 0, permits: count}));
  }

  available() {
    return counted('semaphore_available', this);
  }
}

async function counted(name, handle) {
  const there = [0];
  await abi.callAside(name, handle, there);
  return there[0];
}

const leaderOf = (l) => ({term: BigInt(l.term), note: l.note, host: l.host, pid: l.pid, program: l.program, afterGap: l.after_gap === 1});

class Leaders extends Handle {
  #asks = false;

  async next(wait) {
    if (this.#asks) throw new errors.InvalidArgument('leaders: another call is in progress', {operation: 'leaders_next'});
    this.#asks = true;
    try {
      await outcome('Leaders.next', (how) => abi.call('leaders_next', this._known, how, null), wait);
    } finally {
      this.#asks = false;
    }
    const found = abi.sized('leader');
    abi.call('leaders_found', this._known, found);
    return leaderOf(found);
  }
}

class Election extends Lock {
  async leader() {
    const found = abi.sized('leader');
    await abi.callAside('election_leader', this, found);
    return found.term ? leaderOf(found) : null;
  }

  observe() {
    return new Leaders(abi.made('election_observe', this._known));
  }
}

class MultiLock extends Lock {}

class Redlock extends Lock {}

class Latch extends Handle {
  countDown(n = 1) {
    return abi.callAside('latch_count_down', this, n, null);
  }

  async wait(wait) {
    await outcome('Latch.wait', (how) => abi.call('latch_wait', this._known, how), wait);
  }

  remaining() {
    return counted('latch_remaining', this);
  }

  remove() {
    return abi.callAside('latch_remove', this);
  }
}

class Arrival extends Handle {}

class Barrier extends Handle {
  async arrive(wait) {
    return new Arrival((await outcome('Barrier.arrive', (how) => abi.call('barrier_arrive_within', this._known, how, null), wait)).lease);
  }

  async wait(arrival, wait) {
    try {
      await outcome('Barrier.wait', (how) => abi.call('barrier_wait', this._known, arrival, how), wait);
    } catch (why) {
      if (why instanceof errors.Lost) arrival.close();
      throw why;
    }
    arrival.close();  // the library has closed it, too
  }

  async arriveAndWait(wait) {
    await outcome('Barrier.arriveAndWait', (how) => abi.call('barrier_arrive_and_wait', this._known, how), wait);
  }

  async arriveAndDrop(wait) {
    await outcome('Barrier.arriveAndDrop', (how) => abi.call('barrier_arrive_and_drop_within', this._known, how), wait);
  }
}

class Condition extends Handle {
  async wait(lease, wait) {
    const how = given.wait(wait, 'Condition.wait: wait');
    if (lease instanceof Lease) ++lease._waits;
    try {
      return (await outcome('Condition.wait', (to) => abi.call('condition_wait', this._known, lease, to, null), how)).number !== 0;
    } catch (why) {
      const unchanged = [errors.NotOwner, errors.InvalidArgument, errors.Unsupported, TypeError].some((kind) => why instanceof kind);
      if (!unchanged) lease._gone(why);
      throw why;
    } finally {
      if (lease instanceof Lease) --lease._waits;
    }
  }

  notifyOne() {
    return counted('condition_notify_one', this);
  }

  notifyAll() {
    return counted('condition_notify_all', this);
  }
}

/** Accepts only a plain object: the entries of a Map or an array would be ignored. */
function keyOf(key, method) {
  if (Symbol.iterator in given.object(key, `${method}: key`)) throw given.wrong(`${method}: key`, 'an object of texts', key);
  const parts = Object.entries(key).map(([part, value]) => ({part, value}));
  return [parts.length ? parts : null, parts.length];
}

const decisionOf = (d) => ({
  taken: d.taken === 1, wait: Number(d.wait_us) / 1e3, limit: Number(d.limit), remaining: Number(d.remaining),
  reset: Number(d.reset_us) / 1e3, rule: d.rule, tokens: Number(d.tokens), due: Array.from(d.due_us)});

class Limiter extends Handle {
  async tryTake(n = 1, key = {}) {
    const parts = keyOf(key, 'Limiter.tryTake');
    return this._decided((there) => ['limiter_try_take', this._known, n, ...parts, abi.sized('wait'), there]);
  }

  async take(n = 1, key = {}, wait = {}) {
    const parts = keyOf(key, 'Limiter.take');
    const event = await outcome('Limiter.take', (how) => abi.call('limiter_take', this._known, n, ...parts, how, null), wait);
    return event.number !== 0;
  }

  async takeDecision(n = 1, key = {}, wait = {}) {
    const method = 'Limiter.takeDecision', parts = keyOf(key, method);
    const event = await outcome(method, (how) => abi.call('limiter_take_decision', this._known, n, ...parts, how, null), wait);
    return decisionOf(event.decision());
  }

  async reserve(n, longestWait, key = {}) {
    const parts = keyOf(key, 'Limiter.reserve');
    const where = 'Limiter.reserve: longestWait';
    const longest = given.duration(given.number(longestWait, where), where, 1e3, 0);
    return this._decided((there) => ['limiter_reserve', this._known, n, longest, ...parts, there]);
  }

  async peek(n = 1, key = {}) {
    const parts = keyOf(key, 'Limiter.peek');
    return this._decided((there) => ['limiter_peek', this._known, n, ...parts, there]);
  }

  async refund(what = 1, key = {}) {
    const parts = keyOf(key, 'Limiter.refund');
    if (typeof what !== 'object') return abi.callAside('limiter_refund', this, what, ...parts);
    const d = new given.Options(what, 'Limiter.refund: what');
    const taken = abi.sized('decision', {taken: d.flag('taken') ? 1 : 0, tokens: d.get('tokens'), due_us: d.get('due')});
    return abi.callAside('limiter_give_back', this, taken, ...parts);
  }

  async _decided(ask) {
    const d = abi.sized('decision');
    await abi.callAside(...ask(d));
    return decisionOf(d);
  }
}

const NEVER = -1;

function lockOptions(options, method, o = new given.Options(options, `${method}: options`)) {
  const there = abi.sized('lock_options', {
    no_renewal: o.flag('renew', true) ? 0 : 1, unconfirmed_release: o.flag('unconfirmedRelease', false) ? 1 : 0,
    lease_ms: o.duration('lease'), max_hold_ms: o.duration('maxHold'), local_time_us: o.duration('localTime', 1e3, NEVER),
    linger_us: o.duration('linger', 1e3, 0), max_waiters: o.get('maxWaiters', 0), reason: o.get('reason')});
  o.done();
  return there;
}

const PREFERENCES = new Map([['fifo', 0], ['readers', 1], ['writers', 2]]);

class Session extends Handle {
  mutex(name, options) {
    return new Lock(abi.made('mutex', this._known, name, lockOptions(options, 'Session.mutex')));
  }

  fairMutex(name, options) {
    return new Lock(abi.made('fair_mutex', this._known, name, lockOptions(options, 'Session.fairMutex')));
  }

  sharedMutex(name, options) {
    const o = new given.Options(options, 'Session.sharedMutex: options');
    const preference = o.text('preference', 'fifo');
    const there = lockOptions(options, 'Session.sharedMutex', o);
    return new SharedMutex(abi.made('shared_mutex', this._known, name, PREFERENCES.get(preference) ?? -1, there));
  }

  semaphore(name, capacity, options) {
    return new Semaphore(abi.made('semaphore', this._known, name, capacity, lockOptions(options, 'Session.semaphore')));
  }

  election(name, options) {
    const o = new given.Options(options, 'Session.election: options');
    const there = abi.sized('election_options', {note: o.get('note'), priority: o.get('priority', 0), lease_ms: o.duration('lease')});
    o.done();
    return new Election(abi.made('election', this._known, name, there));
  }

  latch(name, count, options) {
    const o = new given.Options(options, 'Session.latch: options');
    const keep = o.duration('keep', 1e-3);
    o.done();
    return new Latch(abi.made('latch_open', this._known, name, count, keep));
  }

  barrier(name, count, options) {
    const o = new given.Options(options, 'Session.barrier: options');
    const lease = o.duration('lease');
    o.done();
    return new Barrier(abi.made('barrier_open', this._known, name, count, lease));
  }

  condition(name) {
    return new Condition(abi.made('condition_open', this._known, name));
  }

  limiter(name, rules, options) {
    const o = new given.Options(options, 'Session.limiter: options');
    const there = given.list(rules, 'Session.limiter: rules', (rule, where) => {
      const r = new given.Options(rule, where);
      const by = r.list('by', []);
      const one = {tokens: r.get('tokens'), per_us: r.duration('per', 1e3) || 1e6, burst: r.get('burst', 0), name: r.get('name'),
              by: by.length ? by : null, by_count: by.length, interval: r.flag('interval', false) ? 1 : 0};
      r.done();
      return one;
    });
    const local = o.get('localTokens', 0);
    o.done();
    return new Limiter(abi.made('limiter_open', this._known, name, there, there.length, local));
  }

  get url() {
    const text = Buffer.alloc(4096);
    abi.call('session_url', this._known, text, text.length);
    return text.toString('utf8', 0, text.indexOf(0));
  }

  async show(name) {
    const i = abi.sized('name_info');
    await abi.callAside('show', this, name, i);
    return {kind: i.kind, capacity: i.capacity, remaining: i.remaining, holders: i.holders, waiters: i.waiters,
            lastFence: BigInt(i.last_fence), holder: i.holder};
  }

  async forceRelease(name, shortId = null) {
    const removed = [0];
    await abi.callAside('force_release', this, name, shortId, removed);
    return Number(removed[0]);
  }
}

async function open(url, options) {
  const there = [0];
  const o = new given.Options(options, 'open: options');
  const how = abi.sized('session_options', {
    lease_ms: o.duration('lease'), store_timeout_ms: o.duration('storeTimeout'), name_prefix: o.get('namePrefix')});
  o.done();
  await abi.callAside('open', url, how, there);
  return new Session(there[0]);
}

function multiLock(...members) {
  const there = members.map((member, at) => {
    if (typeof member?._member !== 'function') throw given.wrong(`multiLock: members[${at}]`, 'a lock', member);
    return member._member();
  });
  return new MultiLock(abi.made('multi_lock', there, there.length));
}

function redlock(nodes, name, options) {
  const o = new given.Options(options, 'redlock: options');
  const there = abi.sized('redlock_options', {
    lease_ms: o.duration('lease'), node_timeout_ms: o.duration('nodeTimeout'), trust_after_ms: o.duration('trustAfter', 1, 0),
    reason: o.get('reason')});
  o.done();
  const all = given.list(nodes, 'redlock: nodes');
  return new Redlock(abi.made('redlock', all, all.length, name, there));
}

const version = abi.version;

// The end of a program releases all leases. The end of a worker thread releases only those of that thread.
process.on('exit', () => {
  endWaits();
  abi.endAll();
  if (isMainThread) abi.closeAll();
  else known.forEach((handle) => abi.functions.close(handle, null));
});

module.exports = {open, multiLock, redlock, Session, Lease, Lock, SharedMutex, Semaphore, Election, Leaders, MultiLock, Redlock,
                  Latch, Arrival, Barrier, Condition, Limiter, version, ...require('./errors.js')};
