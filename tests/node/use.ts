// Compiled and not run: checks the types.
import * as holdfast from '../../bindings/node';

export async function ship(order: string): Promise<bigint> {
  using store = await holdfast.open('sqlite:locks.db', {lease: 10_000});
  // #region using
  await using lease = await store.mutex(order).acquire({timeout: 5_000, signal: AbortSignal.timeout(4_000)});
  lease.signal.addEventListener('abort', () => console.error('lost'));
  // #endregion
  const free: number = await store.semaphore('s', 3).available();
  const all = holdfast.multiLock(store.mutex('a'), store.sharedMutex('b').shared(), store.semaphore('s', 3).permits(2));
  const written: string = await all.with(async (held) => `${held.fences.length} of ${free}`);
  const barrier: holdfast.Barrier = store.barrier('b', 2);
  const arrival: holdfast.Arrival = await barrier.arrive({timeout: 5_000});
  await barrier.wait(arrival);
  console.log(store.url.length);
  try {
    const limiter: holdfast.Limiter = store.limiter('r', [{tokens: 1, by: ['client']}]);
    if (await limiter.take(1, {client: written})) await limiter.refund(1, {client: written});
    const taken: holdfast.Decision = await limiter.takeDecision(1, {client: written}, {timeout: 5_000});
    if (taken.taken) await limiter.refund(taken, {client: written});
  } catch (why) {
    if (why instanceof holdfast.TimedOut) return BigInt(why.code);
    throw why;
  }
  const nothing = null, options = {lease: nothing, renew: nothing, maxHold: nothing, localTime: nothing, linger: nothing};
  const lock = store.semaphore('s', 3n, {...options, maxWaiters: 2n, unconfirmedRelease: nothing, reason: nothing}).permits(2n);
  await (await lock.acquire({timeout: nothing, signal: nothing})).extend(nothing);
  store.sharedMutex('b', {...options, preference: nothing, maxWaiters: nothing});
  store.election('e', {note: nothing, priority: nothing, lease: nothing});
  await store.latch('l', 2n, {keep: nothing}).countDown(1n);
  store.barrier('b', 2n, {lease: nothing});
  const rule = {tokens: 5n, per: nothing, burst: 2n ** 50n, by: nothing, interval: nothing, name: nothing} as const;
  const rules: readonly holdfast.Rule[] = [rule, {tokens: 1, burst: nothing, by: ['client'] as const}];
  const limit = store.limiter('r', rules, {localTokens: nothing});
  await limit.tryTake(1n);
  await limit.take(1n, {}, {timeout: nothing});
  await limit.takeDecision(1n);
  await limit.reserve(1n, 10);
  await limit.peek(1n);
  await limit.refund(1n);
  const others = {lease: nothing, storeTimeout: nothing, namePrefix: nothing};
  const nodes: readonly holdfast.Session[] = [store, await holdfast.open('memory:', others)];
  holdfast.redlock(nodes, 'n', {lease: nothing, nodeTimeout: nothing, trustAfter: nothing, reason: nothing});
  const held: holdfast.Lease | holdfast.Lock = lease;
  if (held instanceof holdfast.Lease) held.check();
  // @ts-expect-error: they are made by the methods of a session
  new holdfast.Limiter(1);
  // @ts-expect-error: a fence is no number
  const rounded: number = lease.fence;
  return lease.fence;
}
