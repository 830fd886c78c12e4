// The page without a browser: what it sorts, filters, writes and asks for. Elements are those of a stand-in that knows text only.
import assert from 'node:assert';
import {cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {after, beforeEach, test} from 'node:test';

const page = join(dirname(fileURLToPath(import.meta.url)), '../../tool/serve/page');

/** A child is an element or a text. It has no innerHTML: what a page writes there is kept nowhere, and no test sees it. */
class Element {
  children = [];
  listeners = new Map();
  attributes = new Map();
  style = {};
  dataset = {};
  hidden = false;
  value = '';
  className = '';
  scrollTop = 0;
  clientHeight = 600;
  offsetHeight = 24;
  offsetParent = {};
  classList = {toggle() {}};
  get textContent() {
    return this.children.map((c) => (c instanceof Element ? c.textContent : c)).join('');
  }
  set textContent(text) {
    this.children = [String(text)];
  }
  get options() {
    return this.children;
  }
  append(...more) {
    this.children.push(...more);
  }
  replaceChildren(...all) {
    this.children = all;
  }
  setAttribute(name, value) {
    this.attributes.set(name, value);
  }
  removeAttribute(name) {
    this.attributes.delete(name);
  }
  addEventListener(kind, does) {
    this.listeners.set(kind, does);
  }
  hear(kind, event = {}) {
    this.listeners.get(kind)({preventDefault() {}, ...event});
  }
  focus() {}
  showModal() {
    this.open = true;
  }
  close() {
    this.open = false;
  }
  /** All elements in it with this tag. */
  all(tag) {
    return this.children.filter((c) => c instanceof Element).flatMap((c) => [...(c.tag === tag ? [c] : []), ...c.all(tag)]);
  }
}

const elements = new Map();
const element = (id) => elements.get(id) ?? elements.set(id, new Element()).get(id);
let due = [];
let stream;
let asked = [];
let answers = {};
const made = (tag) => Object.assign(new Element(), {tag});
Object.assign(globalThis, {
  Node: Element,
  document: {hidden: false, documentElement: new Element(), getElementById: element, createElement: made,
    createElementNS: (_, tag) => made(tag), addEventListener() {}},
  async fetch(path, how) {
    asked.push({path, ...how});
    const [status, said] = answers[path.split('?')[0]];
    return {ok: status === 200, status, json: async () => said};
  },
  getComputedStyle: () => ({getPropertyValue: () => '24px'}),
  location: {hash: ''},
  EventSource: class extends Element {
    constructor() {
      super();
      stream = this;
    }
  },
  addEventListener() {},
  setInterval() {},
  setTimeout(does) {
    due.push(does);
    return due.length;
  },
});

const folder = mkdtempSync(join(tmpdir(), 'holdfast-page-'));
after(() => rmSync(folder, {recursive: true}));
cpSync(page, folder, {recursive: true});
writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
const load = (file) => import(pathToFileURL(join(folder, file)));
const [{connect}, {startTable}, {visible, duration}, {startLock, showLock, hideLock}, {showGraph},
  {startHealth, showStores, showElections}] =
  await Promise.all(['state.js', 'table.js', 'text.js', 'lock.js', 'graph.js', 'health.js'].map(load));
element('store').append(Object.assign(made('option'), {value: ''})); // as the document has it
connect();
startTable();
startLock();
startHealth();

function say(event, data) {
  stream.hear(event, {data: JSON.stringify(data)});
  for (const does of due.splice(0)) does();
}
const greet = (stores = ['memory:'], unlocks = false) => say('hello', {stores, unlocks, time: new Date().toISOString()});
const rows = (...locks) => say('rows', {store: 0, locks, gone: []});
const lock = (name, more = {}) => ({lock: name, kind: 'mutex', holders: [], waiters: [], ...more});
const held = (name, more = {}) => lock(name, {holders: [{host: 'web', pid: 7, reason: 'work', ...more}]});
const shown = () => element('rows').children.filter((row) => !row.hidden);
const cells = (column) => shown().map((row) => row.children[column].textContent);
const names = () => cells(0).join();
const choose = (id, value) => {
  element(id).value = value;
  element(id).hear('input');
};
const click = (column) => element('columns').children[column].children[0].hear('click');

beforeEach(() => {
  for (const id of ['search', 'only', 'kind', 'store']) element(id).value = '';
  choose('sort', 'name');
  hideLock();
  answers = {};
  asked = [];
  greet();
});

/** What was begun before is done: a round of the event loop for each answer that is waited for. */
async function settled() {
  for (let i = 0; i < 10; ++i) await new Promise(setImmediate);
}
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const ago = (seconds) => new Date(Date.now() - 1000 * seconds).toISOString();
const process = (reason, more) => ({owner: 'id-' + reason, host: 'web', pid: 7, program: 'job', reason, since: ago(5), weight: 1, ...more});
const seen = (count, most) => ({count, sum_seconds: 3, buckets: [{up_to_seconds: 1, count}, {count: most}]});
const whole = (more) => ({kind: 'mutex', capacity: 1, remaining: 0, last_fence: '9', holders: [], waiters: [], changes: [],
  held: seen(2, 1), waited: seen(0, 0), ...more});
async function lockPage(name, said) {
  answers['/api/lock'] = [200, said];
  showLock(0, name);
  await settled();
  return element('lock');
}

test('the document preloads each module, so that no module waits for the one that imports it', () => {
  const modules = readdirSync(page).filter((f) => f.endsWith('.js') && f !== 'main.js');
  const preloaded = readFileSync(join(page, 'index.html'), 'utf8').matchAll(/<link rel="modulepreload" href="\/([^"]+)">/g);
  assert.deepEqual([...preloaded].map((m) => m[1]).sort(), modules.sort());
});

test('rows are added, changed and removed with their locks', () => {
  rows(lock('a'), lock('b'));
  assert.strictEqual(names(), 'a,b');
  rows(held('b', {reason: 'backup'}));
  assert.deepStrictEqual(cells(3), ['', 'backup']);
  say('rows', {store: 0, locks: [], gone: ['a']});
  assert.strictEqual(names(), 'b');
  say('forget', {store: 0});
  assert.strictEqual(names(), '');
});

test('names, hosts and reasons are shown as visible text', () => {
  const evil = ['<img src=x onerror=alert(1)>', '</script>', '\x1b[2J', '\u202egnorw', '\u200f\u061c', '\u{e0041}', '\u2028', '__proto__',
    '\ud800'];
  const seed = Math.floor(Math.random() * 2 ** 31);
  let next = seed;
  const random = (below) => (next = (next * 48271) % 2147483647) % below;
  for (let n = 0; n < 200; ++n) {
    let some = '';
    while (some.length < 200) some += String.fromCodePoint(random(4) ? random(0x250) : random(0x110000));
    evil.push(some);
  }
  for (const text of evil) {
    greet();
    rows(held(text, {host: text, reason: text}));
    const [row] = shown();
    assert.strictEqual(row.children[0].textContent, visible(text), `seed ${seed}`);
    assert.strictEqual(row.children[3].textContent, visible(text), `seed ${seed}`);
    assert(row.children[2].textContent.startsWith(visible(text)), `seed ${seed}`);
    for (const cell of row.children) {
      assert(cell.children.every((child) => typeof child === 'string'), `seed ${seed}`);
      assert(!hidden.test(cell.textContent), `seed ${seed}`);
    }
  }
  assert.strictEqual(visible('<b>\u202e\n'), '<b>\\u202e\\u000a');
});

test('each column sorts both ways, and unknown values come last', () => {
  const at = (second) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
  const waiter = (second) => ({host: 'w', pid: 1, since: at(second)});
  const one = {...held('b', {host: 'x', reason: 'p', since: at(1), expires_at: at(50)}), last_fence: '9', waiters: [waiter(5)]};
  const two = {...held('a', {host: 'y', reason: 'q', since: at(2), expires_at: at(60)}), kind: 'semaphore', last_fence: '8',
    waiters: [waiter(7), waiter(6)]};
  rows(one, two, lock('c', {kind: 'zebra'}));
  const orders = {name: ['a,b,c', 'c,b,a'], kind: ['b,a,c', 'c,a,b'], holder: ['b,a,c', 'a,b,c'], reason: ['b,a,c', 'a,b,c'],
    held: ['b,a,c', 'a,b,c'], lease: ['b,a,c', 'a,b,c'], waiters: ['a,b,c', 'c,b,a'], oldest: ['b,a,c', 'a,b,c'],
    fence: ['b,a,c', 'a,b,c']};
  assert.deepStrictEqual(element('sort').children.map((o) => o.value), Object.keys(orders));
  Object.values(orders).forEach(([up, down], column) => {
    choose('sort', 'fence');
    if (column === 8) choose('sort', 'name');
    click(column);
    assert.strictEqual(names(), up, `column ${column}`);
    assert.strictEqual(element('columns').children[column].attributes.get('aria-sort'), 'ascending');
    click(column);
    assert.strictEqual(names(), down, `column ${column}, turned round`);
    assert.strictEqual(element('columns').children[column].attributes.get('aria-sort'), 'descending');
  });
});

test('a filter shows only matching names, and the count states the total', () => {
  greet(['memory:', 'sqlite:x']);
  rows(held('held'), {...held('waited'), waiters: [{host: 'db', pid: 2, reason: 'Release 12'}]},
    lock('idle', {kind: 'latch', capacity: 3, remaining: 1}));
  say('rows', {store: 1, locks: [held('other')], gone: []});
  const by = (id, value, left) => {
    choose(id, value);
    assert.strictEqual(names(), left, `${id} ${value}`);
    assert.strictEqual(element('shown').textContent, `${left.split(',').length} of 4 names`);
    choose(id, '');
  };
  by('only', 'held', 'held,other,waited');
  by('only', 'waiting', 'waited');
  by('kind', 'latch', 'idle');
  by('store', '1', 'other');
  by('search', 'release 12', 'waited');
  by('search', 'DB', 'waited');
  assert.strictEqual(element('shown').textContent, '4 names');
  assert.deepStrictEqual(cells(1), ['mutex', 'latch 2/3', 'mutex', 'mutex']);
});

test('after a restart of the server only its present stores are shown', () => {
  greet(['memory:', 'sqlite:x']);
  choose('store', '1');
  greet(['redis:']);
  assert.deepStrictEqual(element('store').children.map((o) => o.textContent), ['', 'redis:']);
  assert.strictEqual(element('store').value, '');
  greet(['memory:', 'sqlite:x']);
  choose('store', '1');
  greet(['memory:', 'sqlite:x']);
  assert.strictEqual(element('store').value, '1');
});

test('of ten thousand names only the visible ones are elements of the page', () => {
  rows(...Array.from({length: 10_000}, (_, n) => held('order:' + String(n).padStart(4, '0'))));
  assert.strictEqual(element('shown').textContent, '10000 names');
  assert(element('rows').children.length < 100);
  element('grid').hear('keydown', {key: 'End'});
  assert.strictEqual(cells(0).at(-1), 'order:9999');
  assert(element('rows').children.length < 100);
  element('grid').hear('keydown', {key: 'Home'});
  assert.strictEqual(cells(0)[0], 'order:0000');
});

test('a name opened with the keyboard becomes the address, with any characters', () => {
  for (const name of ['plain', 'a/b?c#d%e f', '<i>\u202e']) {
    greet();
    rows(held(name), held('~'));
    element('grid').hear('keydown', {key: 'Home'});
    element('grid').hear('keydown', {key: 'Enter'});
    const [, , store, lock_] = location.hash.split('/');
    assert.deepStrictEqual([store, decodeURIComponent(lock_)], ['0', name]);
  }
});

test('durations have at most two units', () => {
  const all = [[NaN, ''], [-5, '0ms'], [849.6, '850ms'], [59_999, '59s'], [200_000, '3m 20s'], [18_120_000, '5h 2m'],
    [187_200_000, '2d 4h']];
  for (const [ms, text] of all) assert.strictEqual(duration(ms), text);
});

test('the page of a lock shows holders, the queue in order, events and durations', async () => {
  const section = await lockPage('deploy', whole({holders: [process('first', {expires_at: ago(-30), fence: '9'})],
    waiters: [process('second'), process('third')],
    changes: [{what: 'taken', ...process('first'), time: ago(5), fence: '9', waited_seconds: 2},
      {what: 'given_up', ...process('before'), time: ago(5), fence: '8', held_seconds: 61}]}));
  assert.strictEqual(asked[0].path, '/api/lock?store=0&lock=deploy');
  const [holders, queue, changes] = section.all('tbody').map((body) => body.children.map((row) => row.children.map((c) => c.textContent)));
  assert.deepStrictEqual(holders.map((row) => row[3]), ['first']);
  assert.deepStrictEqual(queue.map((row) => [row[0], row[4]]), [['1', 'second'], ['2', 'third']]);
  assert.deepStrictEqual(changes.map((row) => [row[1], row[5]]), [['taken', '2s of waiting'], ['given up', '1m 1s of holding']]);
  assert.strictEqual(section.all('rect').length, 2, 'a bar for each hold');
  assert(section.textContent.includes('Held2 seen, 1s on average≤ 1s2> 1s1Waited0 seen'));
  assert.deepStrictEqual(section.all('button'), [], 'nobody can unlock');
});

test('unlocking sends the token and the shown holder, and a refusal is reported', async () => {
  greet(['memory:'], true);
  const section = await lockPage('deploy', whole({holders: [process('first', {expires_at: ago(-30)})]}));
  section.all('button')[0].hear('click');
  assert(element('unlock').open && element('unlock-what').textContent.startsWith('deploy is held by web:7 (first)'));
  Object.assign(element('unlock-token'), {value: 'secret'});
  Object.assign(element('unlock-reason'), {value: 'stuck'});
  answers['/api/unlock'] = [401, {error: 'the token is wrong'}];
  element('unlock-yes').hear('click');
  await settled();
  assert.strictEqual(element('unlock-trouble').textContent, 'the token is wrong');
  assert(element('unlock').open);
  answers['/api/unlock'] = [200, {}];
  element('unlock-yes').hear('click');
  await settled();
  assert(!element('unlock').open);
  const sent = asked.filter((one) => one.path === '/api/unlock?store=0');
  assert.strictEqual(sent.length, 2);
  assert.deepStrictEqual([sent[0].method, sent[0].headers, JSON.parse(sent[0].body)],
    ['POST', {Authorization: 'Bearer secret'}, {lock: 'deploy', owner: 'id-first', reason: 'stuck'}]);
});

test('a ring of waits is listed step by step, and the omitted steps are counted', async () => {
  const processes = [{host: 'a', pid: 1, program: 'p'}, {host: 'b', pid: 2, program: 'q'}];
  answers['/api/graph'] = [200, {processes, waits_left_out: 3, rings: [[0, 1]], waits: [
    {from: 0, to: 1, in_ring: true, must: true, lock: 'stock'}, {from: 1, to: 0, in_ring: true, must: true, lock: 'orders'}]}];
  await showGraph();
  assert.strictEqual(element('ring-count').textContent, '1 ring');
  const steps = element('waits').all('li').map((step) => step.textContent);
  assert.deepStrictEqual(steps, ['a:1 waits for stock, held by b:2', 'b:2 waits for orders, held by a:1']);
  assert.strictEqual(element('waits').all('path').filter((p) => p.attributes.get('class') === 'edge bad').length, 2);
  assert(element('waits').textContent.includes('3 more waits are not listed'));
});

test('stores show share and busiest names, elections their term, limits their emptiest bucket', async () => {
  rows({...held('leader', {fence: '42', reason: 'note', since: ago(61)}), kind: 'election'}, {...lock('api'), kind: 'rate_limiter'});
  say('health', {store: 0, reachable: true, since: ago(61), round_trip_seconds: 0.0002, commands: 10, errors: 1, used_share: 0.004,
    allowed_share: 0.01, round_seconds: 2});
  answers['/api/busiest'] = [200, {locks: [{lock: 'deploy', taken: 3}]}];
  answers['/api/lock'] = [200, {buckets: [{rule: 'r', key: ['acme'], limit: 5, remaining: 3, tokens: 5, per_seconds: 1, full_in_seconds: 1,
    unchanged_seconds: 1}]}];
  await showStores();
  for (const part of ['0.200 ms', 'last minute0.40 %', 'allowed now1.00 %', 'deploytaken 3 times', 'Errors1'])
    assert(element('stores').textContent.includes(part), part);
  await showElections();
  const [led, limits] = element('elections').all('tbody').map((body) => body.children[0].children.map((c) => c.textContent));
  assert.deepStrictEqual(led, ['leader', 'web:7', 'note', '42', '1m 1s', '0']);
  assert.deepStrictEqual(limits.slice(0, 5), ['api', '1', 'r', 'acme', ' 3 of 5']);
});

test('a store that answers and cannot list its names shows why', async () => {
  greet();
  answers = {'/api/busiest': [200, {locks: []}]};
  say('health', {store: 0, reachable: true, since: new Date().toISOString(), note: 'the names cannot\u202e be listed',
    round_trip_seconds: 0, commands: 1, errors: 0, used_share: 0, allowed_share: 0.01, round_seconds: 0});
  await showStores();
  assert.match(element('stores').textContent, /answers, for .*the names cannot\\u202e be listed/);
});

test('a holder that died is shown as dead and not as the leader', async () => {
  const died = {since: ago(61), expires_at: ago(-30), died: true};
  rows(held('deploy', died), {...held('leader', {...died, fence: '42'}), kind: 'election',
    waiters: [process('living'), process('dead', {died: true})]});
  const reason = 'the holder died; the next program that asks gets it';
  assert.deepStrictEqual([cells(3)[0], cells(5)[0]], [reason, 'died']);
  await showElections();
  const [led] = element('elections').all('tbody').map((body) => body.children[0].children.map((c) => c.textContent));
  assert.deepStrictEqual(led, ['leader', 'nobody', '', '', '', '1']);
  const section = await lockPage('deploy', whole({kind: 'semaphore', capacity: 2, holders: [process('first', died),
    process('second', {expires_at: ago(-30)})], waiters: [process('third', {died: true}), process('fourth')]}));
  const [holders, queue] = section.all('tbody').map((body) => body.children.map((row) => row.children.map((c) => c.textContent)));
  assert.strictEqual(holders[0][5], 'died');
  assert.notStrictEqual(holders[1][5], 'died');
  assert.deepStrictEqual(queue.map((row) => row[0]), ['died', '1']);
  assert(section.textContent.includes('1 of 2 holders died; the next program that asks gets it'));
});

test('no view writes invisible characters', async () => {
  const evil = '<img src=x>\u202e\x1b[31m\u2028';
  const who = {...process(evil), host: evil, program: evil, owner: evil};
  greet([evil], true);
  rows({...held(evil, {host: evil, reason: evil}), kind: 'election'}, {...lock(evil + 2), kind: 'rate_limiter'},
    lock(evil + 3, {error: evil}));
  say('health', {store: 0, reachable: false, error: evil, round_trip_seconds: 1, commands: 1, errors: 1, used_share: 0, allowed_share: 0});
  answers['/api/busiest'] = [200, {locks: [{lock: evil, taken: 1}]}];
  answers['/api/graph'] = [200, {processes: [who, who], waits_left_out: 0, rings: [[0, 1]],
    waits: [{from: 0, to: 1, in_ring: true, lock: evil}]}];
  const bucket = {rule: evil, key: [evil], limit: 5, remaining: 3};
  await lockPage(evil, whole({kind: 'rate_limiter', holders: [who], waiters: [who], changes: [{what: 'taken', ...who, time: ago(1)}],
    buckets: [bucket, {...bucket, error: evil}]}));
  await showGraph();
  await showStores();
  await showElections();
  for (const view of ['lock', 'waits', 'stores', 'elections', 'rows', 'store']) {
    assert(element(view).textContent.includes('<img src=x>\\u202e'), view);
    assert(!hidden.test(element(view).textContent), view);
    assert.deepStrictEqual(element(view).all('img'), []);
  }
});
