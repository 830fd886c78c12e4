'use strict';
// member.js URL NAME LOG WORKER LEASE_MS: takes the lock again and again, and writes so, until LOG.end is there.
const fs = require('node:fs');
const holdfast = require('../../bindings/node');

async function main([url, name, path, worker, lease]) {
  const log = fs.openSync(path, 'a');
  const store = await holdfast.open(url, {lease: Number(lease)});
  const lock = store.mutex(name);
  while (!fs.existsSync(`${path}.end`)) {
    try {
      await lock.with((held) => {
        const fence = held.fence;
        fs.writeSync(log, `enter ${worker} ${fence}\n`);
        fs.writeSync(log, `leave ${worker} ${fence}\n`);
      });
    } catch (why) {
      if (!(why instanceof holdfast.Lost)) throw why;
    }
  }
}

main(process.argv.slice(2));
