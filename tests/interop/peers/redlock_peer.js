'use strict';
// npm's redlock with ioredis, on one server or several. Arguments: ports, name, guard.
const Redlock = require('redlock');
const party = require('./party');

const [ports, name, guard] = process.argv.slice(2);
const redlock = new Redlock(party.clients(ports), {retryCount: 20, retryDelay: 8, retryJitter: 4});

const take = (ms) => redlock.lock(name, ms).catch(() => null);
const giveBack = (lock) => lock.unlock().catch(() => console.error('lost'));

party.play(take, giveBack, guard);
