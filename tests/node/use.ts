// Compiled and not run: checks the types.
import * as holdfast from '../../bindings/node';

export async function ship(order: string): Promise<bigint> {
  using store = await holdfast.open('sqlite:locks.db', {lease: 10_000});
  await using lease = await store.mutex(order).acquire({timeout: 5_000, signal: AbortSignal.timeout(4_000)});
  lease.signal.addEventListener('abort', () => console.error('lost'));
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
  const held: holdfast.Lease | holdfast.Lock = lease;
  if (held instanceof holdfast.Lease) held.check();
  // @ts-expect-error: they are made by the methods of a session
  new holdfast.Limiter(1);
  // @ts-expect-error: a fence is no number
  const rounded: number = lease.fence;
  return lease.fence;
}
