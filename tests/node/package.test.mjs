// The package as npm packs it: it runs, and modules import its exports by name.
import assert from 'node:assert';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import os from 'node:os';
import path from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';

import * as named from '../../bindings/node/index.js';

const bindings = fileURLToPath(new URL('../../bindings/node', import.meta.url));
const required = createRequire(import.meta.url)(bindings);

test('an ES module can import each export by its name', () => {
  for (const [name, part] of Object.entries(required)) assert.strictEqual(named[name], part, name);
  assert.strictEqual(new named.Busy('b').code, 1);
  assert.strictEqual(new named.Internal('i').name, 'Internal');
});

test('the npm package has the licence, and the program of its README and examples/first_program.mjs run', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-node-'));
  t.after(() => fs.rmSync(folder, {recursive: true}));
  const packed = execFileSync('npm', ['pack', bindings, '--silent', '--pack-destination', folder], {encoding: 'utf8', cwd: folder}).trim();
  const place = path.join(folder, 'node_modules/holdfast');
  fs.mkdirSync(place, {recursive: true});
  execFileSync('tar', ['-xzf', path.join(folder, packed), '-C', place, '--strip-components=1']);
  const licence = fileURLToPath(new URL('../../LICENSE', import.meta.url));
  assert.deepStrictEqual(fs.readFileSync(path.join(place, 'LICENSE')), fs.readFileSync(licence));
  const page = fs.readFileSync(path.join(place, 'README.md'), 'utf8');
  assert.ok(!page.includes(']('), 'a link to a file leads nowhere outside of the repository');
  const [, program] = /^```js\n(.*?)^```/ms.exec(page);
  fs.writeFileSync(path.join(folder, 'readme.js'), program.replace('redis://localhost', 'memory:readme'));
  assert.match(execFileSync(process.execPath, ['readme.js'], {encoding: 'utf8', cwd: folder}), /^update stock ... where fence <= \d+\n$/);
  fs.copyFileSync(path.join(bindings, '../../examples/first_program.mjs'), path.join(folder, 'first_program.mjs'));
  const first = execFileSync(process.execPath, ['first_program.mjs'], {encoding: 'utf8', cwd: folder});
  assert.match(first, /^update stock ... where fence <= \d+\nserved\n$/);
  fs.writeFileSync(path.join(folder, 'use.mjs'), `import {open, Busy} from 'holdfast';
    const store = await open('memory:packed');
    const lease = await store.mutex('m').acquire();
    const refused = await store.mutex('m').acquire({timeout: 0}).catch((why) => why instanceof Busy);
    console.log(lease.fence > 0n, refused);`);
  const said = execFileSync(process.execPath, ['use.mjs'], {encoding: 'utf8', cwd: folder});
  assert.strictEqual(said, 'true true\n');
});
