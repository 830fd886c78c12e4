'use strict';
// Blocks with `await using` and `using`, which TypeScript compiles for versions of Node that lack them, run with the package.
const assert = require('node:assert/strict');
const {test} = require('node:test');
const typescript = require('typescript');
const holdfast = require('../../bindings/node');

const BLOCKS = typescript.transpileModule(`
  exports.awaitUsing = async (lock, work) => {
    await using lease = await lock.acquire();
    await work(lease);
  };
  exports.using = async (open, work) => {
    using store = await open();
    await work(store);
  };`, {compilerOptions: {target: 'es2022', module: 'commonjs'}}).outputText;
const blocks = {};
new Function('exports', BLOCKS)(blocks);

const rule = (name, body) => test(name, () => blocks.using(() => holdfast.open('memory:using'), body));

rule('await using holds the lock in the block and releases it at the end', async (store) => {
  const lock = store.mutex('m');
  let lease;
  await blocks.awaitUsing(lock, async (held) => {
    lease = held;
    assert.deepEqual([held.state, await lock.tryAcquire()], ['held', null]);
  });
  assert.equal(lease.state, 'released');
  await (await lock.tryAcquire()).release();
});

rule('await using rejects with Lost if the lock was lost in the block', async (store) => {
  await assert.rejects(blocks.awaitUsing(store.mutex('m'), () => store.forceRelease('m')), holdfast.Lost);
});

rule('an error of the block is passed on, also together with Lost', async (store) => {
  const lock = store.mutex('m'), mine = new Error('mine');
  await assert.rejects(blocks.awaitUsing(lock, () => { throw mine; }), mine);
  await (await lock.tryAcquire()).release();
  await assert.rejects(blocks.awaitUsing(lock, async () => { await store.forceRelease('m'); throw mine; }), (both) =>
    both.name === 'SuppressedError' && both.suppressed === mine && both.error instanceof holdfast.Lost);
});

test('using closes a session at the end of the block', async () => {
  let store;
  await blocks.using(() => holdfast.open('memory:using'), (opened) => { store = opened; });
  await assert.rejects(store.show('m'), holdfast.HoldfastError);
});
