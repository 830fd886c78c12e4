'use strict';
// member.js URL NAMES LOG WORKER LEASE_MS: takes one name after the other, and writes so into LOG.NAME, until LOG.end is there.
const fs = require('node:fs');
const holdfast = require('../../bindings/node');

async function main([url, names, path, worker, lease]) {
  const store = await holdfast.open(url, {lease: Number(lease)});
  const each = names.split(',').map((name) => ({lock: store.mutex(name), log: fs.openSync(`${path}.${name}`, 'a')}));
  for (let turn = 0; !fs.existsSync(`${path}.end`); ++turn) {
    const {lock, log} = each[turn % each.length];
    try {
      await lock.with((held) => {
        const fence = held.fence;
        fs.writeSync(log, `enter ${worker} ${fence}\n`);
        if (fs.existsSync(`${path}.stop.${worker}`)) process.kill(process.pid, 'SIGSTOP');
        fs.writeSync(log, `leave ${worker} ${fence}\n`);
      });
    } catch (why) {
      if (!(why instanceof holdfast.Lost)) throw why;
    }
  }
}

main(process.argv.slice(2));
