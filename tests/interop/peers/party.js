'use strict';
// party.py for Node: the same commands on standard input, the same answers.
const childProcess = require('child_process');
const fs = require('fs');
const readline = require('readline');

// Milliseconds; party.py has seconds.
const WORKING = 20000, DYING = 3000;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Node has no flock; but a lock that another program makes on our open file lasts as long as we
// keep that open.
function enter(path) {
  const file = fs.openSync(path, 'a');
  const locked = childProcess.spawnSync('flock', ['-n', '3'], {stdio: ['ignore', 'ignore', 'ignore', file]});
  if (locked.status === 0) return file;
  fs.closeSync(file);
  return null;
}

// take(ms) resolves to nothing if it took too long; giveBack() gets the result of take().
exports.play = async function play(take, giveBack, guardPath) {
  const orders = readline.createInterface({input: process.stdin});
  const order = new Promise((heard) => orders.once('line', heard));
  console.log('ready');
  if (await order === 'hold') {
    // Without the guard: a process that is killed late enough has lost the lock, and would keep the
    // guard.
    while (!await take(DYING));
    console.log('holding');
    return;
  }
  let told = false;
  orders.once('line', () => { told = true; });
  let sections = 0, violations = 0;
  while (!told) {
    const held = await take(WORKING);
    if (!held) continue;
    const alone = enter(guardPath);
    if (alone === null) ++violations;
    await pause(1);
    if (alone !== null) fs.closeSync(alone);
    await giveBack(held);
    ++sections;
    await pause(8);
  }
  console.log(`${sections} ${violations}`);
  process.exit(0);
};

// One of Node's clients for each of some ports: "6379,6380".
exports.clients = (ports) => {
  const Redis = require('ioredis');
  return ports.split(',').map((port) => new Redis(Number(port)));
};
