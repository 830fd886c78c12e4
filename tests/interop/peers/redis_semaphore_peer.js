'use strict';
// The Mutex of npm's redis-semaphore with ioredis; several servers: its RedlockMutex. Arguments:
// ports, name, guard.
const {Mutex, RedlockMutex} = require('redis-semaphore');
const party = require('./party');

const [ports, name, guard] = process.argv.slice(2);
const clients = party.clients(ports);

async function take(ms) {
  const options = {lockTimeout: ms, acquireTimeout: 200, retryInterval: 8, refreshInterval: 0};
  const lock = clients.length === 1 ? new Mutex(clients[0], name, options) : new RedlockMutex(clients, name, options);
  return await lock.tryAcquire() ? lock : null;
}

party.play(take, (lock) => lock.release(), guard);
