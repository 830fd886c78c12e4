'use strict';
// member.js URL NAMES SHARED LOG WORKER LEASE_MS: takes one name after the other, then SHARED as a reader and as a writer, and writes so
// into LOG.NAME, until LOG.end is there.
const fs = require('node:fs');
const holdfast = require('../../bindings/node');

async function main([url, names, shared, path, worker, lease]) {
  const store = await holdfast.open(url, {lease: Number(lease)});
  const rw = store.sharedMutex(shared);
  const turns = names.split(',').map((name) => ({lock: store.mutex(name), name, begins: 'enter', ends: 'leave'}));
  turns.push({lock: rw.shared(), name: shared, begins: 'read', ends: 'done'}, {lock: rw, name: shared, begins: 'enter', ends: 'leave'});
  for (const turn of turns) turn.log = fs.openSync(`${path}.${turn.name}`, 'a');
  for (let number = 0; !fs.existsSync(`${path}.end`); ++number) {
    const {lock, log, begins, ends} = turns[number % turns.length];
    try {
      await lock.with((held) => {
        const fence = held.fence;
        fs.writeSync(log, `${begins} ${worker} ${fence}\n`);
        if (fs.existsSync(`${path}.stop.${worker}`)) process.kill(process.pid, 'SIGSTOP');
        fs.writeSync(log, `${ends} ${worker} ${fence}\n`);
      });
    } catch (why) {
      if (!(why instanceof holdfast.Lost)) throw why;
    }
  }
}

main(process.argv.slice(2));
