'use strict';
// The rules of the package, on memory, SQLite and Redis. HOLDFAST_LIBRARY names the library that is tested.
const assert = require('node:assert/strict');
const {execFileSync, spawn, spawnSync} = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const {after, before, describe, test} = require('node:test');
const {Worker} = require('node:worker_threads');
const holdfast = require('../../bindings/node');
const abi = require('../../bindings/node/abi.js');

const repository = path.join(__dirname, '../..');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-node-'));
const servers = [];

function answers(socket) {
  return new Promise((resolve) => {
    const client = net.connect(socket, () => client.write('PING\r\n'));
    client.on('data', (said) => { client.destroy(); resolve(String(said).startsWith('+PONG')); });
    client.on('error', () => resolve(false));
  });
}

async function redisServer() {
  const socket = path.join(folder, `redis${servers.length}.sock`);
  const process = spawn('redis-server', ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', folder], {stdio: 'ignore'});
  servers.push(process);
  while (!await answers(socket)) assert.equal(process.exitCode, null, 'redis-server ended at once');
  const end = () => new Promise((ended) => { process.on('exit', ended).kill('SIGKILL'); });
  return {url: `redis+unix://${socket}`, end, stop: () => process.kill('SIGSTOP'), resume: () => process.kill('SIGCONT')};
}

after(() => {
  for (const server of servers) server.kill('SIGKILL');
  fs.rmSync(folder, {recursive: true, force: true});
});

let last = 0;
const STORES = {memory: () => 'memory:node', sqlite: () => `sqlite:${folder}/locks.db`, redis: async () => (await redisServer()).url};

for (const [store, urlOf] of Object.entries(STORES)) {
  describe(store, () => {
    let url;
    before(async () => { url = await urlOf(); });

    /** Two programs, as far as the store can tell. */
    const rule = (name, body) => test(name, async () => {
      const namePrefix = `t${++last}:`;
      const [here, there] = [await holdfast.open(url, {namePrefix}), await holdfast.open(url, {namePrefix})];
      try {
        await body(here, there, namePrefix);
      } finally {
        here.close();
        there.close();
      }
    });

    rule('a mutex excludes others and its fence increases', async (here, there) => {
      const first = await here.mutex('m').with(async (lease) => {
        assert.equal(lease.state, 'held');
        assert.ok(lease.remaining > 0 && lease.name.endsWith('m') && !lease.lost);
        assert.equal(await there.mutex('m').tryAcquire(), null);
        return lease.fence;
      });
      const lease = await there.mutex('m').acquire({timeout: 30e3});
      assert.ok(lease.fence > first);
      await lease[Symbol.asyncDispose]();
      assert.equal(lease.state, 'released');
      await assert.rejects(lease.release(), holdfast.NotOwner);
      assert.throws(() => lease.check(), holdfast.NotOwner);
    });

    rule('a lock and its unlock write into memory that earlier calls had', async (here) => {
      const mutex = here.mutex('m'), allocate = Buffer.alloc;
      let made = 0;
      const pair = async () => { await (await mutex.acquire()).release(); };
      await pair();
      Buffer.alloc = (...size) => { ++made; return allocate(...size); };
      try {
        for (let i = 0; i < 3; ++i) await pair();
      } finally {
        Buffer.alloc = allocate;
      }
      assert.equal(made, 0);
    });

    rule('many calls at the same time leave no more memory behind than those that can have begun', async (here) => {
      const semaphore = here.semaphore('s', 1), allocate = Buffer.alloc, many = 1000;
      const all = () => Promise.all(Array.from({length: many}, () => semaphore.available()));
      await all();
      let made = 0;
      Buffer.alloc = (...size) => { ++made; return allocate(...size); };
      try {
        await all();
      } finally {
        Buffer.alloc = allocate;
      }
      assert.ok(made >= many - 128, `${made}`);
    });

    rule('calls that fail at the same time have their own errors', async (here, there) => {
      const names = ['a', 'b', 'c'];
      const held = await Promise.all(names.map((name) => there.mutex(name).acquire()));
      const failed = await Promise.all(names.map((name) => here.mutex(name).acquire({timeout: 0}).catch((why) => why)));
      assert.deepEqual(failed.map((why) => [why.constructor, why.lockName.at(-1)]), names.map((name) => [holdfast.Busy, name]));
      for (const lease of held) await lease.release();
    });

    rule('waits time out, and an AbortSignal cancels them', async (here, there) => {
      const held = await here.fairMutex('m').acquire();
      await assert.rejects(there.mutex('m').acquire({timeout: 20}), holdfast.TimedOut);
      await assert.rejects(there.mutex('m').acquire({timeout: 0}), holdfast.Busy);
      const off = new AbortController();
      const waiting = there.mutex('m').acquire({signal: off.signal});
      let ended = false;
      waiting.catch(() => { ended = true; });
      while ((await here.show('m')).waiters === 0) assert.ok(!ended, 'it ended without waiting');
      off.abort();
      await assert.rejects(waiting, holdfast.Cancelled);
      await assert.rejects(there.mutex('m').acquire({signal: off.signal}), holdfast.Cancelled);
      await held.release();
    });

    rule('tryAcquire with no timeout, or with 0, is one try and does not wait', async (here, there) => {
      const held = await here.mutex('m').acquire();
      for (const wait of [undefined, {}, {timeout: undefined}, {timeout: null}, {timeout: 0}]) {
        let tried;
        there.mutex('m').tryAcquire(wait).then((lease) => { tried = lease; }, (why) => { tried = why; });
        while (tried === undefined) assert.equal((await here.show('m')).waiters, 0, 'it waits');
        assert.equal(tried, null);
      }
      await held.release();
    });

    rule('a hundred concurrent waits get the lock one after the other', async (here, there) => {
      // With renewals, a pause of half a second right after a hand-over could lose the lock: no holder confirmed it yet.
      const locks = [here, there].map((session) => session.mutex('m', {renew: false}));
      let inside = 0;
      const fences = [];
      await Promise.all(Array.from({length: 100}, (_, i) => locks[i % 2].with(async (lease) => {
        assert.equal(++inside, 1);
        fences.push(lease.fence);
        await null;
        --inside;
      })));
      assert.equal(fences.length, 100);
      assert.ok(fences.every((fence, i) => i === 0 || fence > fences[i - 1]));
    });

    rule('a loss aborts the signal of the lease', async (here, there) => {
      const lease = await here.mutex('m', {lease: 2e3}).acquire();
      const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
      assert.equal(await there.forceRelease('m'), 1);
      const alive = setInterval(() => {}, 1e6);  // a lease keeps no program
      await lost;
      clearInterval(alive);
      assert.ok(lease.signal.reason instanceof holdfast.Lost && lease.lost);
      assert.throws(() => lease.check(), holdfast.Lost);
      await assert.rejects(lease.release(), (why) => why instanceof holdfast.Lost && why.leaseGone);
    });

    rule('forceRelease with an empty short id releases nothing', async (here, there) => {
      const lease = await here.mutex('m').acquire();
      await assert.rejects(there.forceRelease('m', ''), holdfast.InvalidArgument);
      assert.equal(await there.mutex('m').tryAcquire(), null);
      assert.equal(await there.forceRelease('m', lease.shortId), 1);
      lease.close();
    });

    rule('an error of the work is passed on, and the lock is released', async (here, there) => {
      await assert.rejects(here.mutex('m').with(() => { throw new RangeError('own'); }), RangeError);
      await (await there.mutex('m').acquire({timeout: 30e3})).release();
    });

    rule('readers share, permits are counted, and a multiLock takes all members or none', async (here, there) => {
      const rw = here.sharedMutex('rw');
      const reader = await rw.shared().acquire();
      const other = await there.sharedMutex('rw').shared().acquire();
      assert.equal(await rw.tryUpgrade(reader), false);
      await other.release();
      assert.equal(await rw.tryUpgrade(reader), true);
      await rw.downgrade(reader);
      const all = holdfast.multiLock(here.mutex('a'), here.semaphore('s', 3).permits(2), rw.shared());
      const busy = await there.mutex('a').acquire();
      assert.equal(await all.tryAcquire(), null);
      await busy.release();
      await all.with(async (lease) => {
        assert.equal(lease.fences.length, 3);
        assert.equal(await there.semaphore('s', 3).available(), 1);
      });
      await reader.extend(60e3);
      await reader.release();
    });

    rule('one candidate leads and every session can read the leader', async (here, there) => {
      const theirs = there.election('e');
      assert.equal(await theirs.leader(), null);
      const leadership = await here.election('e', {note: 'here'}).acquire();
      const leader = await theirs.leader();
      assert.deepEqual([leader.term, leader.note, leader.pid], [leadership.fence, 'here', process.pid]);
      const seen = theirs.observe();
      assert.equal((await seen.next()).term, leadership.fence);
      await assert.rejects(seen.next({timeout: 20}), holdfast.TimedOut);
      await leadership.release();
    });

    rule('latches, barriers and conditions work between sessions', async (here, there) => {
      const latch = here.latch('l', 2);
      await Promise.all([latch.wait({timeout: 30e3}), latch.countDown(), there.latch('l', 2).countDown()]);
      assert.equal(await latch.remaining(), 0);
      await latch.remove();
      await Promise.all([here.barrier('b', 2), there.barrier('b', 2)].map((b) => b.arriveAndWait({timeout: 30e3})));
      const lease = await here.mutex('m').acquire();
      const before = lease.fence;
      assert.equal(await here.condition('c').wait(lease, {timeout: 20}), false);
      const condition = here.condition('c');
      const waiting = condition.wait(lease, {timeout: 30e3});
      await there.mutex('m').with(async () => assert.equal(await there.condition('c').notifyAll(), 1));
      assert.equal(await waiting, true);
      assert.ok(lease.fence > before);
      await lease.release();
    });

    rule('an arrival can be waited for separately, and still counts after a timeout', async (here, there) => {
      const [mine, theirs] = [here, there].map((session) => session.barrier('b', 2));
      const arrival = await mine.arrive({timeout: 30e3});
      await assert.rejects(mine.wait(arrival, {timeout: 20}), holdfast.TimedOut);
      await assert.rejects(mine.wait(arrival, {timeout: 0}), holdfast.Busy);
      const other = await theirs.arrive();
      await assert.rejects(theirs.wait(arrival), holdfast.InvalidArgument);
      await Promise.all([mine.wait(arrival, {timeout: 30e3}), theirs.wait(other, {timeout: 30e3})]);
      await assert.rejects(mine.wait(arrival), holdfast.InvalidArgument);
      await assert.rejects(mine.wait(undefined), TypeError);
      (await theirs.arrive()).close();
      await mine.arriveAndWait({timeout: 30e3});
      const last = await mine.arrive();
      assert.ok(await there.forceRelease('b') > 0);
      await assert.rejects(mine.wait(last, {timeout: 30e3}), holdfast.Lost);
    });

    rule('a session returns the URL of its store', async (here) => {
      assert.equal(here.url, (await holdfast.open(url)).url);
      assert.ok(here.url.startsWith(store), here.url);
    });

    rule('a participant of a barrier counts once in a phase, also when it drops out', async (here, there) => {
      const [first, second, third] = [here, there, there].map((session) => session.barrier('b', 3));
      const waiting = async (count) => {
        while ((await here.show('b')).waiters !== count) await new Promise((then) => setTimeout(then, 1));
      };
      const calledOff = new AbortController();
      const came = first.arriveAndWait({signal: calledOff.signal});
      await waiting(1);
      calledOff.abort();
      await assert.rejects(came, holdfast.Cancelled);
      await assert.rejects(first.arriveAndDrop({timeout: 20}), holdfast.TimedOut, 'its arrival stands, and its phase comes first');
      const off = AbortSignal.abort();
      await assert.rejects(first.arriveAndDrop({signal: off}), holdfast.Cancelled);
      const dropped = first.arriveAndDrop();
      const both = second.arriveAndWait({timeout: 30e3});
      await waiting(2);
      await third.arriveAndWait({timeout: 30e3});
      await both;
      await dropped;
      await Promise.all([second, third].map((b) => b.arriveAndWait({timeout: 30e3})));
    });

    rule('a lease closed during a condition wait is not held afterwards', async (here, there) => {
      const condition = here.condition('c');
      const lease = await here.mutex('m').acquire();
      const cancelled = assert.rejects(condition.wait(lease, {timeout: 30e3}), holdfast.Cancelled);
      await there.mutex('m').with(async () => {
        lease.close();
        await condition.notifyAll();
      });
      await cancelled;
      await (await there.mutex('m').acquire({timeout: 30e3})).release();
    });

    rule('a signal first read during a condition wait is replaced by a working one after the wait', async (here, there) => {
      const condition = here.condition('c');
      const lease = await here.mutex('m').acquire();
      const waiting = condition.wait(lease, {timeout: 30e3});
      await there.mutex('m').with(async () => {
        const {signal} = lease;
        await null;
        assert.ok(signal.aborted && signal.reason instanceof holdfast.NotOwner);
        await condition.notifyAll();
      });
      assert.equal(await waiting, true);
      const {signal} = lease;
      await null;
      assert.ok(!signal.aborted && lease.signal === signal);
      assert.equal(await there.forceRelease('m'), 1);
      await assert.rejects(lease.extend(), holdfast.Lost);
      while (!signal.aborted) await new Promise((then) => setTimeout(then, 1));
      assert.ok(signal.reason instanceof holdfast.Lost);
    });

    rule('with() accepts work that releases its lease, and rejects if a wait of the work lost the lease', async (here) => {
      const mutex = here.mutex('m');
      assert.equal(await mutex.with(async (lease) => { await lease.release(); return 5; }), 5);
      assert.equal(await mutex.with((lease) => { lease.close(); return 6; }), 6);
      const failing = (lease) => here.condition('c').wait(lease, {signal: AbortSignal.abort()}).catch(() => {});
      await assert.rejects(mutex.with(failing), holdfast.NotOwner);
    });

    rule('a release refused during a condition wait changes nothing', async (here, there) => {
      const condition = here.condition('c');
      for (const releaseFirst of [false, true]) {
        const lease = await here.mutex('m').acquire();
        const releasing = releaseFirst && lease.release();  // on a thread of the pool: either may come first
        const waiting = condition.wait(lease, {timeout: 30e3});
        waiting.catch(() => {});
        if (releaseFirst && !await releasing.catch((why) => why)) continue;
        await there.mutex('m').with(async () => {
          await assert.rejects(lease.release(), (why) => why instanceof holdfast.NotOwner && why.leaseGone);
          await condition.notifyAll();
        });
        assert.equal(await waiting, true);
        await lease[Symbol.asyncDispose]();
        assert.equal(lease.state, 'released');
        await (await there.mutex('m').acquire({timeout: 5e3})).release();
      }
    });

    rule('a limiter grants its tokens and then returns the waiting time', async (here) => {
      const limiter = here.limiter('r', [{tokens: 3, per: 3600e3, by: ['client'], name: 'hourly'}]);
      const taken = await limiter.tryTake(2, {client: 'acme'});
      assert.deepEqual([taken.taken, taken.remaining, taken.limit, taken.rule], [true, 1, 3, 'hourly']);
      const refused = await limiter.peek(2, {client: 'acme'});
      assert.ok(!refused.taken && refused.wait > 0);
      assert.equal(await limiter.take(3, {client: 'apex'}), true);
      assert.equal(await limiter.take(3, {client: 'apex'}, {timeout: 0}), false);
      await limiter.refund(1, {client: 'acme'});
      const reserved = await limiter.reserve(3, 3600e3, {client: 'acme'});
      assert.ok(reserved.taken && reserved.tokens === 3);
      await limiter.refund(reserved, {client: 'acme'});
      assert.equal((await limiter.peek(2, {client: 'acme'})).remaining, 2, 'as if it had not been reserved');
      await assert.rejects(limiter.refund(refused, {client: 'acme'}), holdfast.InvalidArgument);
    });

    rule('tokens taken by a wait can be given back', async (here) => {
      const limiter = here.limiter('r', [{tokens: 3, per: 3600e3, name: 'hourly'}]);
      const {due, reset, ...taken} = await limiter.takeDecision(2);
      assert.deepEqual(taken, {taken: true, wait: taken.wait, limit: 3, remaining: 1, rule: 'hourly', tokens: 2});
      assert.ok(due[0] > 0 && reset > 0);
      await limiter.refund({due, reset, ...taken});
      assert.equal((await limiter.peek()).remaining, 3);
      assert.ok((await limiter.takeDecision(3, {}, {timeout: 0})).taken);
      const refused = await limiter.takeDecision(1, {}, {timeout: 0});
      assert.ok(!refused.taken && refused.wait > 0);
      await assert.rejects(limiter.takeDecision(1, {}, {signal: AbortSignal.abort()}), holdfast.Cancelled);
    });
  });
}

test('a majority of nodes grants a redlock', async () => {
  const nodes = await Promise.all([0, 1, 2].map((n) => holdfast.open(`memory:node-${n}`)));
  const mine = holdfast.redlock(nodes, 'q');
  await mine.with(async (lease) => {
    assert.ok(lease.fence > 0n);
    assert.equal(await holdfast.redlock(nodes, 'q').tryAcquire(), null);
  });
});

// A node that takes longer than its share of the time has no vote.
const isOver = (why) => why instanceof holdfast.Unavailable || why instanceof holdfast.TimedOut;

test('waits for a redlock leave threads of the pool to other calls', {timeout: 60e3}, async () => {
  const nodes = await Promise.all([0, 1, 2].map((n) => holdfast.open(`memory:node-many-${n}`)));
  const held = await holdfast.redlock(nodes, 'q').acquire();
  const off = new AbortController();
  const calledOff = holdfast.redlock(nodes, 'q').acquire({signal: off.signal});
  let inside = 0;
  const waiting = Array.from({length: 5}, () => holdfast.redlock(nodes, 'q').with(() => { ++inside; }));
  await assert.rejects(holdfast.redlock(nodes, 'q').acquire({timeout: 20}), isOver);
  const inVain = Array.from({length: 50}, () => holdfast.redlock(nodes, 'q').acquire({timeout: 100}));
  await Promise.all(inVain.map((one) => assert.rejects(one, isOver)));
  off.abort();
  await assert.rejects(calledOff, holdfast.Cancelled);
  assert.equal(inside, 0);
  await held.release();
  await Promise.all(waiting);
  assert.equal(inside, 5);
});

test('waits for leaders leave threads of the pool to other calls', {timeout: 60e3}, async () => {
  const store = await holdfast.open('memory:node-leaders');
  const seen = Array.from({length: 5}, () => store.election('e').observe());
  const waiting = seen.map((leaders) => leaders.next());
  await assert.rejects(seen[0].next(), holdfast.InvalidArgument);
  const leadership = await store.election('e').acquire();
  for (const leader of await Promise.all(waiting)) assert.equal(leader.term, leadership.fence);
  await leadership.release();
});

test('a wait that polls ends while the store is away', {timeout: 60e3}, async () => {
  const nodes = await Promise.all([0, 1, 2].map(redisServer));
  const sessions = await Promise.all(nodes.map((node) => holdfast.open(node.url)));
  const lock = holdfast.redlock(sessions, 'q'), seen = sessions[0].election('e').observe();
  await lock.with(() => {});
  await Promise.all([nodes[0].end(), nodes[1].end()]);
  await assert.rejects(seen.next({timeout: 300}), isOver);
  await assert.rejects(lock.acquire({timeout: 300}), isOver);
});

test('a worker thread that ends releases its leases', {timeout: 60e3}, async () => {
  const url = `sqlite:${folder}/worker.db`;
  const code = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    (async () => {
      const store = await holdfast.open(${JSON.stringify(url)});
      globalThis.kept = [store, await store.mutex('m', {lease: 3600e3}).acquire()];
    })();`;
  const worker = new Worker(code, {eval: true});
  assert.equal(await new Promise((resolve) => worker.on('exit', resolve)), 0);
  assert.equal((await (await holdfast.open(url)).show('m')).holders, 0);
});

test('a worker thread that ends releases a lock that is being granted to it', {timeout: 60e3}, async () => {
  const url = `sqlite:${folder}/granted.db`;
  const store = await holdfast.open(url);
  const work = (code, workerData) => {
    const worker = new Worker(`const {workerData} = require('node:worker_threads');
      const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
      (async () => {
        const store = await holdfast.open(${JSON.stringify(url)});
        const [m, n] = ['m', 'n'].map((name) => store.mutex(name, {lease: 3600e3}));
        ${code}
        process.exit(0);
      })();`, {eval: true, workerData});
    return new Promise((resolve) => worker.on('exit', resolve));
  };
  const holders = () => Promise.all(['m', 'n'].map(async (name) => (await store.show(name)).holders));
  assert.equal(await work('m.acquire(); n.acquire();'), 0);
  assert.deepEqual(await holders(), [0, 0], 'on a thread of the pool');

  const held = await Promise.all(['m', 'n'].map((name) => store.mutex(name).acquire()));
  const granted = new Int32Array(new SharedArrayBuffer(4));
  let ended = false;
  const exit = work('for (const one of [m, n]) one.acquire({timeout: 60e3}); Atomics.wait(workerData, 0, 0);', granted);
  exit.then(() => { ended = true; });
  for (const lease of held) {
    const {name, fence} = lease;
    while ((await store.show(name)).waiters === 0) assert.ok(!ended, 'it ended without waiting');
    await lease.release();
    while ((await store.show(name)).lastFence === fence) assert.ok(!ended, 'it ended without waiting');
  }
  Atomics.store(granted, 0, 1);
  Atomics.notify(granted, 0);
  assert.equal(await exit, 0);
  while ((await holders()).some((count) => count > 0));  // a thread of the library may give back what it is granted now
});

test('many calls at once are all done, also by a worker thread that ends', {timeout: 60e3}, async () => {
  const url = `sqlite:${folder}/many.db`;
  const store = await holdfast.open(url);
  const locks = Array.from({length: 300}, (_, i) => store.mutex(`m${i}`));
  await Promise.all((await Promise.all(locks.map((lock) => lock.acquire()))).map((lease) => lease.release()));
  const worker = new Worker(`const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    (async () => {
      const store = await holdfast.open(${JSON.stringify(url)});
      const locks = Array.from({length: 300}, (_, i) => store.mutex('m' + i, {lease: 3600e3}));
      for (const lease of await Promise.all(locks.map((lock) => lock.acquire()))) lease.release();
      process.exit(0);
    })();`, {eval: true});
  assert.equal(await new Promise((resolve) => worker.on('exit', resolve)), 0);
  for (const i of locks.keys()) assert.equal((await store.show(`m${i}`)).holders, 0, `m${i}`);
});

test('a worker thread that waits can be terminated', {timeout: 60e3}, async () => {
  const url = `sqlite:${folder}/terminated.db`;
  const store = await holdfast.open(url);
  const held = await store.mutex('m').acquire();
  const code = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    (async () => (await holdfast.open(${JSON.stringify(url)})).mutex('m').acquire())();`;
  const worker = new Worker(code, {eval: true});
  let ended = false;
  worker.on('exit', () => { ended = true; });
  while ((await store.show('m')).waiters === 0) assert.ok(!ended, 'it ended without waiting');
  assert.equal(await worker.terminate(), 1);
  await held.release();
});

test('a failed condition wait aborts the signal of its lease', {timeout: 60e3}, async () => {
  const [here, there] = [await holdfast.open('memory:node-gone'), await holdfast.open('memory:node-gone')];
  const lease = await here.mutex('m').acquire();
  const signal = lease.signal;
  const off = new AbortController();
  const waiting = here.condition('c').wait(lease, {signal: off.signal});
  const other = await there.mutex('m').acquire();
  off.abort();
  await assert.rejects(waiting, holdfast.Cancelled);
  assert.ok(signal.aborted && lease.state === 'released');
  await other.release();
});

/** As if this process had no file descriptor left. */
async function withoutQueues(body) {
  const open = abi.functions.queue_open;
  abi.functions.queue_open = () => holdfast.Overloaded.prototype.code;
  try {
    return await body();
  } finally {
    abi.functions.queue_open = open;
  }
}

test('a condition wait that cannot begin releases the mutex', async () => {
  const [here, there] = [await holdfast.open('memory:node-begin'), await holdfast.open('memory:node-begin')];
  const lease = await here.mutex('m').acquire();
  await withoutQueues(() => assert.rejects(here.condition('c').wait(lease), holdfast.Overloaded));
  assert.equal(lease.state, 'released');
  await (await there.mutex('m').acquire({timeout: 30e3})).release();
});

test('a condition wait with an invalid argument keeps the mutex', async () => {
  const store = await holdfast.open('memory:node-unchanged');
  const lease = await store.mutex('m').acquire();
  await assert.rejects(store.condition('c').wait(lease, {timeout: NaN}), holdfast.InvalidArgument);
  await assert.rejects(store.condition('c').wait(lease, {signal: 'none'}), TypeError);
  assert.equal(lease.state, 'held');
  await lease.release();
});

test('a signal whose watch cannot be made is aborted with the reason', {timeout: 20e3}, async () => {
  const store = await holdfast.open('memory:node-unwatched');
  const lease = await store.mutex('m').acquire();
  const signal = await withoutQueues(() => lease.signal);
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
  assert.ok(signal.reason instanceof holdfast.Overloaded && lease.signal === signal);
  await lease.release();
});

test('the signal of a lost lease is aborted when it is first read', {timeout: 20e3}, async () => {
  const store = await holdfast.open('memory:node-lost-already');
  const lease = await store.mutex('m').acquire();
  assert.equal(await store.forceRelease('m'), 1);
  await assert.rejects(lease.extend(), holdfast.Lost);
  assert.ok(lease.signal.aborted && lease.signal.reason instanceof holdfast.Lost && lease.signal.reason.leaseGone);
});

test('a wait keeps its object open', () => {
  const code = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    (async () => {
      const store = await holdfast.open('memory:waits-kept');
      const quorum = () => holdfast.redlock([store], 'q'), both = () => holdfast.multiLock(store.mutex('m'), store.mutex('n'));
      const held = [await quorum().acquire(), await both().acquire()];
      const waits = [quorum(), both()].map((lock) => lock.acquire({timeout: 60e3}));
      waits.push(store.barrier('b', 2).arriveAndWait(), store.election('e').observe().next());
      for (let i = 0; i < 5; ++i) {
        gc();
        await new Promise(setImmediate);  // here the registry closes what was collected
      }
      for (const lease of held) await lease.release();
      await Promise.all([store.barrier('b', 2).arriveAndWait(), store.election('e').with(() => waits.at(-1)), ...waits]);
      console.log('done');
    })();`;
  assert.equal(execFileSync(process.execPath, ['--expose-gc', '-e', code], {encoding: 'utf8', timeout: 60e3}), 'done\n');
});

test('reading the signal of a lease does not keep it from garbage collection', () => {
  const code = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    (async () => {
      const store = await holdfast.open('memory:node-collected');
      const leave = async () => (await store.mutex('m', {lease: 3600e3}).acquire()).signal.aborted;
      console.log(await leave());
      while (!await store.mutex('m').tryAcquire()) gc();
      console.log('free');
    })();`;
  assert.equal(execFileSync(process.execPath, ['--expose-gc', '-e', code], {encoding: 'utf8', timeout: 60e3}), 'false\nfree\n');
});

test('a garbage-collected lease aborts its signal before another holder can get the lock', () => {
  const code = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    (async () => {
      const store = await holdfast.open('memory:node-collected-signal');
      const {signal} = await store.mutex('m', {lease: 3600e3}).acquire();
      const any = new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
      while (!await store.mutex('m').tryAcquire()) gc();
      console.log(signal.aborted, signal.reason instanceof holdfast.Lost, (await any).leaseGone);
    })();`;
  assert.equal(execFileSync(process.execPath, ['--expose-gc', '-e', code], {encoding: 'utf8', timeout: 60e3}), 'true true true\n');
});

test('listening in worker threads, and for losses only, frees its thread of the pool regularly', {timeout: 60e3}, async () => {
  const watched = `const lengths = [], abi = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node/abi.js'))});
    const {async: ask} = abi.functions.queue_next_decision;
    abi.functions.queue_next_decision = {async: (...given) => { lengths.push(given[1]); return ask(...given); }};
    const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    const store = holdfast.open('memory:node-pool');`;
  const most = (code) => `${watched} (async () => { ${code} console.log(Math.max(...lengths) <= 1e8); })();`;
  const wait = "await (await store).mutex('m').with(async () => (await store).mutex('m').acquire({timeout: 200}).catch(() => {}));";
  const losses = `const lease = await (await store).mutex('n').acquire(), {signal} = lease;
    while (lengths.length < 3) await new Promise(setImmediate);
    await lease.release();`;
  const inWorker = (code) => `new (require('node:worker_threads').Worker)(${JSON.stringify(most(code))}, {eval: true})`;
  for (const [code, brief] of [[most(losses), 'true\n'], [most(wait), 'false\n'], [inWorker(wait), 'true\n']]) {
    assert.equal(execFileSync(process.execPath, ['-e', code], {encoding: 'utf8', timeout: 60e3}), brief, code);
  }
});

test('a signal acts while the store does not answer', {timeout: 60e3}, async () => {
  const server = await redisServer();
  const lock = (await holdfast.open(server.url)).mutex('m');
  await lock.with(() => {});
  server.stop();
  try {
    for (const acquire of [(wait) => lock.acquire(wait), (wait) => lock.tryAcquire(wait), (wait) => lock.with(() => {}, wait)]) {
      const off = new AbortController();
      const waiting = acquire({signal: off.signal});
      off.abort();
      await assert.rejects(waiting, holdfast.Cancelled);
    }
  } finally {
    server.resume();
  }
});

test('a loss is reported while more commands wait for the store than the pool has threads', {timeout: 60e3}, async () => {
  const server = await redisServer();
  const store = await holdfast.open(`${server.url}?command_timeout=25s`);
  const lease = await store.mutex('m', {lease: 1000}).acquire();
  const lost = new Promise((told) => { lease.signal.addEventListener('abort', told); });
  server.stop();
  try {
    let ended = 0;
    const commands = Array.from({length: 8}, () => store.semaphore('s', 3).available().finally(() => { ++ended; }));
    await lost;
    assert.equal(ended, 0);
    server.resume();
    await Promise.all(commands);
  } finally {
    server.resume();
  }
  lease.close();
  store.close();
});

test('a second copy of the package can be loaded', () => {
  const code = `const load = () => require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    const first = load();
    for (const file of Object.keys(require.cache)) if (!file.includes('koffi')) delete require.cache[file];
    const second = load();
    (async () => {
      const [here, there] = await Promise.all([first, second].map((one) => one.open('memory:node-copies')));
      await here.mutex('m').with(async () => console.log(first !== second, await there.mutex('m').tryAcquire()));
    })();`;
  assert.equal(execFileSync(process.execPath, ['-e', code], {encoding: 'utf8', timeout: 60e3}), 'true null\n');
});

test('a text that is not Unicode is refused', async () => {
  const store = await holdfast.open('memory:unicode');
  assert.throws(() => store.mutex('\ud800'), holdfast.InvalidName);
  await assert.rejects(store.limiter('r', [{tokens: 5}]).tryTake(1, {client: '\udc01a'}), holdfast.InvalidName);
  await store.mutex('\ud83d\ude00').with((lease) => assert.equal(lease.name, '\ud83d\ude00'));
});

test('trustAfter may be zero', async () => {
  const nodes = await Promise.all([0, 1, 2].map((n) => holdfast.open(`memory:node-trusted-${n}`)));
  await holdfast.redlock(nodes, 'q', {trustAfter: 0}).with((lease) => lease.check());
  for (const trustAfter of [-1, 0.1, NaN]) assert.throws(() => holdfast.redlock(nodes, 'q', {trustAfter}), holdfast.InvalidArgument);
});

test('each code has a class, and an error names operation, name and store', async () => {
  const {byCode} = require('../../bindings/node/errors.js');
  assert.deepEqual([...byCode.keys()], Array.from({length: 21}, (_, i) => i + 1));
  const store = await holdfast.open('memory:errors');
  assert.throws(() => store.mutex(''), (why) => why instanceof holdfast.InvalidName && why instanceof holdfast.HoldfastError);
  assert.throws(() => store.mutex('m', {lease: 0}), holdfast.InvalidArgument);
  assert.throws(() => store.sharedMutex('m', {preference: 'nobody'}), holdfast.InvalidArgument);
  const held = await store.mutex('kind').acquire();
  await assert.rejects(store.semaphore('kind', 3).acquire({timeout: 0}), (why) =>
    why instanceof holdfast.KindMismatch && why.lockName === 'kind' && why.message.includes('kind') && why.code === 9);
  await held.release();
  await assert.rejects(holdfast.open('rediss:/user:secret@x'), (why) =>
    why instanceof holdfast.InvalidArgument && !why.message.includes('secret'));
  store.close();
  assert.throws(() => store.mutex('m'), holdfast.InvalidArgument);
});

test('a program that ends with a lease releases it, and the open handles do not keep the program alive', async () => {
  const url = `sqlite:${folder}/end.db`;
  const code = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    (async () => {
      const lease = await (await holdfast.open(${JSON.stringify(url)})).mutex('m', {lease: 3600e3}).acquire();
      lease.signal.addEventListener('abort', () => {});
      await lease.extend();
      console.log(String(lease.fence));
      process.exit(0);
    })();`;
  assert.match(execFileSync(process.execPath, ['-e', code], {encoding: 'utf8', timeout: 60e3}), /^\d+\n$/);
  assert.equal((await (await holdfast.open(url)).show('m')).holders, 0);
  for (const end of ['await lease.release();', '']) {
    const quiet = code.replace('process.exit(0);', end);
    assert.match(execFileSync(process.execPath, ['-e', quiet], {encoding: 'utf8', timeout: 60e3}), /^\d+\n$/);
    assert.equal((await (await holdfast.open(url)).show('m')).holders, 0);
  }
});

test('the end of a program with the package in its main thread releases the leases of its worker threads', async () => {
  const url = `sqlite:${folder}/workers.db`, package_ = JSON.stringify(path.resolve(__dirname, '../../bindings/node'));
  const hold = `const {parentPort} = require('node:worker_threads');
    (async () => {
      const store = await require(${package_}).open(${JSON.stringify(url)});
      const lease = await store.mutex('m', {lease: 3600e3}).acquire();
      parentPort.postMessage(String(lease.fence));
      await new Promise((resolve) => parentPort.on('message', () => resolve(lease)));
    })();`;
  for (const end of ['process.exit(0)', 'throw new Error("uncaught")']) {
    const code = `require(${package_});
      const worker = new (require('node:worker_threads').Worker)(${JSON.stringify(hold)}, {eval: true});
      worker.on('message', (fence) => { require('node:fs').writeSync(1, fence); ${end}; });`;
    const {stdout} = spawnSync(process.execPath, ['-e', code], {encoding: 'utf8', timeout: 60e3});
    assert.match(stdout, /^\d+$/);
    assert.equal((await (await holdfast.open(url)).show('m')).holders, 0, end);
  }
});

test('a program that ends while a lock is granted to it releases the lock', {timeout: 60e3}, async () => {
  const server = await redisServer();
  const store = await holdfast.open(server.url);
  for (const wait of ['', '{timeout: 60e3}']) {
    let held, answered;
    const asked = new Promise((resolve) => { held = resolve; }), granted = new Promise((resolve) => { answered = resolve; });
    const proxy = net.createServer((client) => {
      const on = net.connect(new URL(server.url).pathname);
      for (const one of [client, on]) one.on('error', () => {});
      on.on('data', (said) => client.write(said));
      client.on('data', (said) => {
        if (!held || !said.includes('in flight')) return on.write(said);
        on.once('data', answered);
        held(() => on.write(said));
        held = null;
      });
    });
    await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const code = `const abi = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node/abi.js'))});
      const {wait} = Atomics, {closeAll} = abi, say = (what) => require('node:fs').writeSync(1, what);
      Atomics.wait = (...given) => say('waits for the calls under way') && wait(...given);
      abi.closeAll = () => { closeAll(); say('has closed all'); };
      const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
      (async () => {
        const store = await holdfast.open('redis://127.0.0.1:${proxy.address().port}');
        await store.mutex('m').with(() => {});  // so that the server knows the script
        store.mutex('in flight', {lease: 3600e3}).acquire(${wait});
        process.stdin.on('data', () => process.exit(0));
      })();`;
    const program = spawn(process.execPath, ['-e', code], {stdio: ['pipe', 'pipe', 'inherit']});
    const exit = new Promise((resolve) => program.on('exit', resolve));
    const goOn = await asked;
    program.stdin.write('end');
    await new Promise((resolve) => program.stdout.once('data', resolve));
    goOn();
    await granted;
    assert.equal(await exit, 0);
    assert.equal((await store.show('in flight')).holders, 0, wait);
    proxy.close();
  }
});

test('a program that waits only for a loss gets the report, and a wait that begins meanwhile continues', () => {
  const code = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    (async () => {
      const store = await holdfast.open('memory:node-late');
      const lease = await store.mutex('m', {lease: 300, maxHold: 1500}).acquire();
      const alive = setInterval(() => {}, 1e6);
      await new Promise((lost) => lease.signal.addEventListener('abort', lost));
      clearInterval(alive);

      const held = await store.mutex('n').acquire();
      held.signal.addEventListener('abort', () => {});
      const timer = globalThis.setTimeout;
      globalThis.setTimeout = (then, length, ...given) => {  // a pause of the package
        globalThis.setTimeout = timer;
        queueMicrotask(() => store.mutex('n').acquire({timeout: 20}).catch((why) => console.log(why.name)));
        return timer(then, 1e6, ...given);
      };
    })();`;
  assert.equal(execFileSync(process.execPath, ['-e', code], {encoding: 'utf8', timeout: 60e3}), 'TimedOut\n');
});

test('numbers that do not fit are refused and not truncated', async () => {
  const [store, other, third] = await Promise.all(['cut', 'cut-2', 'cut-3'].map((name) => holdfast.open(`memory:${name}`)));
  const semaphore = store.semaphore('s', 2), latch = store.latch('l', 2), limiter = store.limiter('r', [{tokens: 5}]);
  const large = 2 ** 32;
  const mutex = store.mutex('m');
  for (const what of [
    () => store.semaphore('wide', large + 3),
    () => store.semaphore('part', 2.5),
    () => semaphore.permits(large + 1).acquire({timeout: 0}),
    () => holdfast.multiLock(semaphore.permits(large + 1)),
    () => store.latch('long', large + 3),
    () => latch.countDown(large + 1),
    () => store.limiter('q', [{tokens: 2 ** 64}]),
    () => store.limiter('q', [{tokens: 2.5}]),
    () => limiter.tryTake(0.5),
    () => store.mutex('m', {lease: Infinity}),
    () => store.mutex('m', {linger: NaN}),
    () => store.election('e', {priority: 2 ** 31}),
    () => mutex.acquire({timeout: NaN}),
    () => store.election('e').observe().next({timeout: NaN}),
    () => holdfast.redlock([store, other, third], 'q').acquire({timeout: NaN}),
  ]) {
    await assert.rejects(async () => what(), holdfast.InvalidArgument, String(what));
  }
  assert.equal(await semaphore.available(), 2);
  assert.equal(await latch.remaining(), 2);
  assert.throws(() => store.mutex('m\0n'), holdfast.InvalidName);
  await assert.rejects(limiter.tryTake(1, {client: 'a\0b'}), holdfast.InvalidName);
  store.close();
});

/** In a program of its own, because a wrong argument that is let through may end it. */
function said(code) {
  const head = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    const abi = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node/abi.js'))});\n`;
  return execFileSync(process.execPath, ['-e', `${head}(async () => {${code}})();`], {encoding: 'utf8', timeout: 60e3});
}

test('an option that does not exist is a TypeError that lists those that do', async (t) => {
  const store = await holdfast.open('memory:');
  t.after(() => store.close());
  const lock = store.mutex('m');
  const never = new AbortController().signal;
  const asks = [
    () => holdfast.open('memory:', {leese: 5}), () => lock.acquire({timout: 50}), () => lock.tryAcquire({timout: 50}),
    () => lock.acquire(never), () => lock.tryAcquire(never), () => store.mutex('m', {lingr: 5}),
    () => store.fairMutex('m', {preference: 'fifo'}),
    () => store.sharedMutex('m', {prefer: 'fifo'}), () => store.semaphore('s', 2, {capacity: 2}),
    () => store.election('e', {maxHold: 5}), () => store.latch('l', 1, {lease: 5}), () => store.barrier('b', 2, {keep: 5}),
    () => store.limiter('r', [{tokens: 1, pre: 5}]), () => store.limiter('r', [{tokens: 1}], {local: 5}),
    () => holdfast.redlock([store, store, store], 'n', {timeout: 5})];
  for (const ask of asks) await assert.rejects(async () => ask(), TypeError, String(ask));
  await assert.rejects(() => lock.acquire({timout: 50}), {message: 'Lock.acquire: wait: there is no timout; there is timeout, signal'});
  await (await lock.acquire({timeout: 50, signal: never})).release();
});

test('an argument of a wrong type is a TypeError that names the argument', () => {
  const told = JSON.parse(said(`
    const store = await holdfast.open('memory:node-wrong');
    const limiter = store.limiter('r', [{tokens: 5, by: ['c']}]), mutex = store.mutex('held'), lease = await mutex.acquire();
    const fails = {get timeout() { throw new RangeError('own'); }}, {signal} = new AbortController();
    class Text { toString() { throw new RangeError('own'); } }
    const tried = {
      number: () => store.mutex(123), bigint: () => store.mutex(123n), zero: () => store.mutex(0), nan: () => store.mutex(NaN),
      array: () => store.mutex(['secret']), object: () => store.mutex({secret: 1}), symbol: () => store.mutex(Symbol('secret')),
      boxed: () => store.mutex(new String('m')), text: () => store.mutex(new Text()), nothing: () => store.mutex(),
      none: () => store.mutex(null),
      bytes: () => store.show(Buffer.from('abc')), show: () => store.show([83]), url: () => holdfast.open(7),
      key: () => limiter.tryTake(1, {c: 42}), keyArray: () => limiter.tryTake(1, {c: [65]}), keyNull: () => limiter.take(1, {c: null}),
      keyText: () => limiter.peek(1, 'abc'), keyMap: () => limiter.tryTake(1, new Map([['c', 'acme']])),
      noKey: () => limiter.refund(1, null),
      count: () => limiter.tryTake('1'), countNull: () => limiter.reserve(null, 5), longest: () => limiter.reserve(1, '5'),
      decision: () => limiter.refund({taken: true, tokens: 1, due: 'abc'}), taken: () => limiter.refund({tokens: 1}),
      due: () => limiter.refund({taken: true, tokens: 1, due: Array(16).fill('1')}), refund: () => limiter.refund(null),
      reason: () => store.mutex('m', {reason: 5}), flag: () => store.mutex('m', {renew: 'no'}),
      interval: () => store.limiter('q', [{tokens: 1, interval: 1}]),
      options: () => store.mutex('m', 5), lease: () => store.mutex('m', {lease: '5'}), big: () => store.mutex('m', {lease: 5n}),
      note: () => store.election('e', {note: 5}), priority: () => store.election('e', {priority: '1'}),
      prefix: () => holdfast.open('memory:', {namePrefix: 5}),
      preference: () => store.sharedMutex('m', {preference: {}}), by: () => store.limiter('q', [{tokens: 1, by: 'client'}]),
      byPart: () => store.limiter('q', [{tokens: 1, by: ['a', , 'b']}]), ruleName: () => store.limiter('q', [{tokens: 1, name: 1}]),
      rules: () => store.limiter('q', {tokens: 1}), tokens: () => store.limiter('q', [{}]),
      wait: () => store.mutex('m').acquire(5), tryWait: () => store.mutex('m').tryAcquire(5),
      timeout: () => store.mutex('m').acquire({timeout: '5'}),
      signal: () => store.mutex('m').acquire({signal: 'none'}), polled: () => store.election('e').observe().next({timeout: 5n}),
      work: () => store.mutex('m').with(), permits: () => store.semaphore('s', 3).permits('2').acquire(),
      members: () => holdfast.multiLock('m'), nodes: () => holdfast.redlock('abc', 'q'), node: () => holdfast.redlock([5], 'q'),
      downgrade: () => store.sharedMutex('rw').downgrade(5), upgrade: () => store.sharedMutex('rw').tryUpgrade(null),
      condition: () => store.condition('c').wait(5), extend: () => lease.extend('5'), getter: () => store.condition('c').wait(lease, fails),
    };
    const told = {state: null};
    for (const [name, body] of Object.entries(tried)) {
      told[name] = await Promise.resolve().then(body).then(() => 'nothing', (why) => why.constructor.name + ' ' + why.message);
    }
    told.state = lease.state;
    console.log(JSON.stringify(told));`));
  const {state, getter, ...wrong} = told;
  assert.equal(state, 'held');
  assert.equal(getter, 'RangeError own');
  for (const [name, why] of Object.entries(wrong)) {
    assert.match(why, /^TypeError [\w.]+: [\w.[\]"]+ must be .*, and is (an? \w+|null|undefined)$/, name);
    assert.doesNotMatch(why, /secret|42|acme/, name);
  }
  assert.equal(wrong.key, 'TypeError Limiter.tryTake: key["c"] must be a string, and is a number');
  assert.equal(wrong.byPart, 'TypeError Session.limiter: rules[0].by[1] must be a string, and is undefined');
  assert.equal(wrong.reason, 'TypeError Session.mutex: options.reason must be a string, and is a number');
});

test('every parameter of every function refuses wrong types', () => {
  const none = [undefined, true, Symbol('s'), () => {}, [], [65], {}, Buffer.from('a'), new String('a')];
  const wrong = {
    'const char *': [...none, 0, 1, NaN, 1n],
    'const char **': [...none.filter((one) => !Array.isArray(one)), [65], [null], [, 'a'], 'a', 1],
    'handle': [...none, 1, 1n, 'a', null], 'uintptr_t': [...none, 'a', NaN, 1.5, null],
    'const uintptr_t *': [...none.filter((one) => !Array.isArray(one)), [1], 'a', 1]};
  const whole = [...none, 'a', '1', null, NaN, 0.5, Infinity, 2 ** 64, 2n ** 64n, -(2n ** 64n)];
  const right = {'const char *': 'a', handle: {_known: 1}, uintptr_t: 1, 'const uintptr_t *': [{_known: 1}]};
  const filled = {member: [{lock: 1, shared: 0, permits: 0}], part: [{part: 'a', value: 'a'}],
    rule: [{tokens: 1, per_us: 1, burst: 0, name: null, by: ['a'], by_count: 1, interval: 0}]};
  const isRefused = (why) => why instanceof TypeError || why instanceof holdfast.InvalidArgument;
  const structOf = (type) => /^const holdfast_(\w+)/.exec(type)?.[1];
  const isOut = (type) => type.startsWith('_') || type === 'void *';
  const ofArray = [undefined, 'a', [1]];
  let looked = 0;
  for (const [name, [, ...parameters]] of Object.entries(abi.FUNCTIONS)) {
    const types = parameters.map((parameter) => parameter.split(': ').at(-1).replace('?', ''));
    const fits = (type) => {
      const struct = structOf(type);
      if (struct) return filled[struct] ?? abi.sized(struct);
      return right[type] ?? (isOut(type) ? [0] : 1);
    };
    const own = abi.functions[name];
    let begun = 0;
    abi.functions[name] = () => { ++begun; return 0; };
    try {
      abi.call(name, ...types.map(fits));
      assert.equal(begun, 1, name);
      for (const [at, type] of types.entries()) {
        const struct = structOf(type);
        const values = struct || isOut(type) ? [] : wrong[type] ?? whole;
        const optional = parameters[at].endsWith('?');
        for (const value of values) {
          const args = types.map(fits);
          args[at] = value;
          assert.throws(() => abi.call(name, ...args), isRefused, `${name} ${at} ${String(type)} ${typeof value}`);
          ++looked;
        }
        if (!struct) continue;
        for (const [field, kind] of Object.entries(abi.structs[struct])) {
          const plain = typeof kind === 'string' ? kind.replace('?', '') : kind;
          for (const value of typeof plain === 'string' ? wrong[plain] ?? whole : ofArray.slice(0, field === 'rule' ? 1 : 3)) {
            const args = types.map(fits), there = [args[at]].flat();
            args[at] = Array.isArray(args[at]) ? [{...there[0], [field]: value}] : {...there[0], [field]: value};
            assert.throws(() => abi.call(name, ...args), isRefused, `${name} ${at} ${struct}.${field} ${typeof value}`);
            ++looked;
          }
        }
        if (optional) abi.call(name, ...types.map((one, i) => i === at ? null : fits(one)));
      }
    } finally {
      abi.functions[name] = own;
    }
  }
  assert.ok(looked > 1000, String(looked));
});

test('a call that koffi refuses occupies no place, and the program can end', () => {
  assert.equal(said(`
    const store = await holdfast.open('memory:node-refused');
    const real = abi.functions.show;
    for (const ask of [(...given) => real.async(given[0], true, ...given.slice(2)), () => { throw new TypeError('at once'); }]) {
      abi.functions.show = {async: ask};
      for (let i = 0; i < 130; ++i) await store.show('m').then(process.abort, (why) => why instanceof TypeError || process.abort());
    }
    abi.functions.show = real;
    console.log((await store.show('m')).holders);`), '0\n');
});

test('a wait rejects when koffi refuses to listen again, and the program continues', () => {
  assert.equal(said(`
    const store = await holdfast.open('memory:node-unheard');
    const lease = await store.mutex('m').acquire();
    const real = abi.functions.queue_next_decision;
    const refuse = () => { throw new TypeError('no room'); };
    const once = (...given) => { abi.functions.queue_next_decision = {async: refuse}; real.async(...given); };
    abi.functions.queue_next_decision = {async: once};
    const why = await store.mutex('m').acquire({timeout: 600_000}).catch((why) => why);
    abi.functions.queue_next_decision = real;
    await lease.release();
    console.log(why.message, await store.mutex('m').tryAcquire({timeout: 600_000}) !== null);`), 'no room true\n');
});

test('a release that koffi refuses keeps the lease', () => {
  assert.equal(said(`
    const store = await holdfast.open('memory:node-unreleased');
    const lease = await store.mutex('m').acquire();
    const real = abi.functions.release;
    abi.functions.release = {async: () => { throw new TypeError('at once'); }};
    await lease.release().then(process.abort, (why) => why instanceof TypeError || process.abort());
    abi.functions.release = real;
    const {state} = lease;
    lease.close();
    console.log(state, await store.mutex('m').tryAcquire() !== null);`), 'held true\n');
});

test('the error for an impossible duration quotes the given number', async () => {
  const store = await holdfast.open('memory:node-durations');
  const lease = await store.mutex('held').acquire();
  for (const [what, told] of [
    [() => store.mutex('m', {lease: NaN}), 'Session.mutex: options.lease: NaN ms is no duration'],
    [() => store.mutex('m', {lease: 0.0001}), 'Session.mutex: options.lease: 0.0001 ms is too short: the least is 1 ms'],
    [() => store.mutex('m', {lease: 1e300}), 'Session.mutex: options.lease: 1e+300 ms is too long'],
    [() => store.fairMutex('m', {maxHold: 0}), 'Session.fairMutex: options.maxHold: 0 ms is too short: the least is 1 ms'],
    [() => store.mutex('m', {linger: 0.0001}), 'Session.mutex: options.linger: 0.0001 ms is too short: the least is 0.001 ms'],
    [() => store.latch('l', 1, {keep: 400}), 'Session.latch: options.keep: 400 ms is too short: the least is 1000 ms'],
    [() => store.limiter('r', [{tokens: 1, per: Infinity}]), 'Session.limiter: rules[0].per: Infinity ms is no duration'],
    [() => store.limiter('r', [{tokens: 1}]).reserve(1, NaN), 'Limiter.reserve: longestWait: NaN ms is no duration'],
    [() => lease.extend(0), 'Lease.extend: length: 0 ms is too short: the least is 1 ms'],
    [() => holdfast.open('memory:', {storeTimeout: 0.5}), 'open: options.storeTimeout: 0.5 ms is too short: the least is 1 ms'],
    [() => holdfast.redlock([store], 'q', {nodeTimeout: -0.5}),
     'redlock: options.nodeTimeout: -0.5 ms is too short: the least is 1 ms'],
    [() => store.mutex('m').acquire({timeout: NaN}), 'Lock.acquire: wait.timeout: NaN is no time'],
  ]) {
    await assert.rejects(async () => what(), (why) => why instanceof holdfast.InvalidArgument && why.message === told, told);
  }
  store.mutex('m', {lease: null, maxHold: null, localTime: 0, linger: -0, maxWaiters: -0});
  await lease.release();
});

test('a bigint beyond the range of a double is passed on unchanged', () => {
  const there = Buffer.alloc(abi.koffi.sizeof(abi.types.rule));
  const own = abi.functions.limiter_open;
  abi.functions.limiter_open = (session, name, rules) => { abi.koffi.encode(there, abi.types.rule, rules[0]); return 0; };
  try {
    const rule = {per_us: -0, burst: 0, name: null, by: null, by_count: 0, interval: -0};
    for (const [tokens, counted] of [[2 ** 63, 2n ** 63n], [2n ** 64n - 1n, 2n ** 64n - 1n], [2 ** 53 + 2, 2n ** 53n + 2n], [-0, 0n]]) {
      abi.call('limiter_open', 1, 'r', [{...rule, tokens}], 1, 0, [0]);
      assert.equal(there.readBigUInt64LE(0), counted);
    }
  } finally {
    abi.functions.limiter_open = own;
  }
});

test('a timeout beyond 64 bits is no limit', async () => {
  const [store, other] = [await holdfast.open('memory:long'), await holdfast.open('memory:long')];
  const held = await store.mutex('m').acquire();
  const later = [2 ** 64 / 1e6, 1e20, Number.MAX_VALUE].map((timeout) => other.mutex('m').acquire({timeout}).then((l) => l.release()));
  while ((await store.show('m')).waiters === 0) await Promise.race([...later, store.show('m')]);
  await held.release();
  await Promise.all(later);
  store.close();
  other.close();
});

test('a lease of many members has a fence for each', async () => {
  const store = await holdfast.open('memory:many');
  const members = Array.from({length: 65}, (_, i) => store.mutex(`m${i}`));
  const lease = await holdfast.multiLock(...members).acquire();
  assert.equal(lease.fences.length, members.length);
  await lease.release();
  store.close();
});

test('a call that waits for a thread keeps its object open', () => {
  const code = `const holdfast = require(${JSON.stringify(path.resolve(__dirname, '../../bindings/node'))});
    const fs = require('node:fs');
    (async () => {
      const store = await holdfast.open('memory:kept');
      const fifos = process.argv.slice(1);
      const busy = fifos.map((fifo) => fs.promises.readFile(fifo));  // each has a thread of the pool until somebody writes
      const calls = [store.latch('l', 3).countDown(), store.latch('l', 3).remaining(), store.semaphore('s', 3).available(),
                     store.limiter('r', [{tokens: 5}]).refund(1), store.barrier('b', 2).arriveAndDrop(),
                     store.condition('c').notifyOne()];
      for (let i = 0; i < 5; ++i) {
        gc();
        await new Promise(setImmediate);  // here the registry closes what was collected
      }
      for (const fifo of fifos) fs.writeFileSync(fifo, '');
      await Promise.all([...calls, ...busy]);
      console.log('done');
    })();`;
  const fifos = Array.from({length: 4}, (_, i) => path.join(folder, `busy${i}`));
  execFileSync('mkfifo', fifos);
  const told = execFileSync(process.execPath, ['--expose-gc', '-e', code, ...fifos], {
    encoding: 'utf8', timeout: 60e3, env: {...process.env, UV_THREADPOOL_SIZE: '4'}});
  assert.equal(told, 'done\n');
});

test('the types declare what the package exports', () => {
  const types = fs.readFileSync(path.join(__dirname, '../../bindings/node/index.d.ts'), 'utf8');
  const declared = new Set(Array.from(types.matchAll(/^export (?:class|const|function) (\w+)/gm), ([, name]) => name));
  assert.deepEqual(Object.keys(holdfast).filter((name) => !declared.delete(name)), []);
  assert.deepEqual([...declared], []);
});

test('structs match the layout of the C header', () => {
  const told = execFileSync(process.env.HOLDFAST_C_RULES, ['--layout'], {encoding: 'utf8'});
  const seen = new Set();
  for (const line of told.trim().split('\n')) {
    const [struct, field, offset, size] = line.split(' ');
    const type = abi.types[struct.replace('holdfast_', '')];
    seen.add(type);
    if (field === '.') {
      assert.equal(abi.koffi.sizeof(type), Number(size), line);
    } else {
      assert.equal(abi.koffi.offsetof(type, field), Number(offset), line);
    }
  }
  assert.equal(seen.size, Object.keys(abi.types).length);
});

/** {name without prefix: the types of its parameters} */
function functionsOfTheHeader() {
  const from = path.join(__dirname, '../../include/holdfast/c');
  const text = fs.readdirSync(from).map((file) => fs.readFileSync(path.join(from, file), 'utf8')).join('').replace(/\/\/.*/g, '');
  const found = text.matchAll(/^[\w *]+ holdfast_(\w+)\(([^)]*)\);/gm);
  const typeOf = (parameter) => parameter.trim().replace(/\s*\w+$/, '').replace(/\s+/g, ' ');
  return new Map(Array.from(found, ([, name, takes]) => [name, takes === 'void' ? [] : takes.split(',').map(typeOf)]));
}

test('no thread of the library can call into JavaScript: no function of the header takes one, and the package makes none', () => {
  const header = fs.readdirSync(path.join(repository, 'include/holdfast/c')).map((file) => path.join('include/holdfast/c', file));
  for (const file of ['include/holdfast/holdfast.h', ...header])
    assert.doesNotMatch(fs.readFileSync(path.join(repository, file), 'utf8').replace(/\/\/.*/g, ''), /\(\s*\*/, file);
  for (const file of fs.readdirSync(path.join(repository, 'bindings/node')).filter((name) => name.endsWith('.js')))
    assert.doesNotMatch(fs.readFileSync(path.join(repository, 'bindings/node', file), 'utf8'), /koffi\.(register|proto)\b/, file);
});

test('each function of the header is called, or left out for a reason', () => {
  const leftOut = {
    barrier_arrive: 'barrier_arrive_within has a limit, too', barrier_arrive_and_drop: 'so has barrier_arrive_and_drop_within',
    queue_next: 'queue_next_decision tells more', words: "the error's class says it"};
  const source = ['abi.js', 'index.js', 'waits.js'].map((file) =>
    fs.readFileSync(path.join(__dirname, '../../bindings/node', file), 'utf8')).join('');
  const called = new Set(Array.from(source.matchAll(/(?:'|\bfunctions\.|\bholdfast_)([a-z_]+)(?:'|\()/g), ([, name]) => name));
  const there = functionsOfTheHeader();
  assert.ok(there.size > 50);
  assert.deepEqual([...there.keys()].filter((name) => !called.has(name)).sort(), Object.keys(leftOut));
  assert.deepEqual(Object.keys(abi.FUNCTIONS).filter((name) => !called.has(name)), [], 'listed, and never called');
});

test('parameters match the C header', () => {
  const numbers = new Set(['int', 'int64_t', 'uint32_t', 'uint64_t']);
  const kind = (type) => numbers.has(type) ? type : type === 'const char *' ? 'text' : 'pointer';
  const there = functionsOfTheHeader();
  for (const [name, [, ...takes]] of Object.entries(abi.FUNCTIONS)) {
    const theirs = [...there.get(abi.IN_C[name] ?? name)];
    assert.equal(theirs.pop(), 'holdfast_error*', name);
    const ours = takes.map((one) => one.split(': ').at(-1).replace(/\?$/, ''));
    assert.deepEqual(ours.map(kind), theirs.map((one) => kind(one.replace('char*', 'char *'))), name);
  }
});
