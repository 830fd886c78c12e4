// The Node package: a lock, its fence, and a rate limit.  node first_program.mjs
// #region lock
import * as holdfast from 'holdfast';

const store = await holdfast.open('sqlite:locks.db');
await store.mutex('order:1000').with(async (lease) => {
  console.log(`update stock ... where fence <= ${lease.fence}`);  // pass lease.signal to work that can be cancelled
}, {timeout: 5_000});
// #endregion

const calls = store.limiter('calls', [{tokens: 100, per: 60_000, by: ['client']}]);
const {taken} = await calls.tryTake(1, {client: 'acme'});
console.log(taken ? 'served' : 'too many calls');
store.close();
