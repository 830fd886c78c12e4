// The table of the page without a browser: what it sorts, filters and writes. Elements are those of a stand-in that knows text only.
import assert from 'node:assert';
import {cpSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
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
}

const elements = new Map();
const element = (id) => elements.get(id) ?? elements.set(id, new Element()).get(id);
let due = [];
let stream;
Object.assign(globalThis, {
  document: {hidden: false, documentElement: new Element(), getElementById: element, createElement: () => new Element(),
    addEventListener() {}},
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
const [{connect}, {startTable}, {visible, duration}] = await Promise.all(['state.js', 'table.js', 'text.js'].map(load));
connect();
startTable();

function say(event, data) {
  stream.hear(event, {data: JSON.stringify(data)});
  for (const does of due.splice(0)) does();
}
const greet = (stores = ['memory:']) => say('hello', {stores, unlocks: false, time: new Date().toISOString()});
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
  greet();
});

test('a row that comes shows, one that changes is changed, and one that is gone goes', () => {
  rows(lock('a'), lock('b'));
  assert.strictEqual(names(), 'a,b');
  rows(held('b', {reason: 'backup'}));
  assert.deepStrictEqual(cells(3), ['', 'backup']);
  say('rows', {store: 0, locks: [], gone: ['a']});
  assert.strictEqual(names(), 'b');
  say('forget', {store: 0});
  assert.strictEqual(names(), '');
});

test('what a name, a host or a reason holds is text that can be seen', () => {
  const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
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

test('each column sorts both ways, and what is not known comes last', () => {
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

test('a filter leaves what it says, and the count says of how many', () => {
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

test('of ten thousand names only those that can be seen are elements', () => {
  rows(...Array.from({length: 10_000}, (_, n) => held('order:' + String(n).padStart(4, '0'))));
  assert.strictEqual(element('shown').textContent, '10000 names');
  assert(element('rows').children.length < 100);
  element('grid').hear('keydown', {key: 'End'});
  assert.strictEqual(cells(0).at(-1), 'order:9999');
  assert(element('rows').children.length < 100);
  element('grid').hear('keydown', {key: 'Home'});
  assert.strictEqual(cells(0)[0], 'order:0000');
});

test('a name that is opened with the keyboard is the address, whatever it holds', () => {
  for (const name of ['plain', 'a/b?c#d%e f', '<i>\u202e']) {
    greet();
    rows(held(name), held('~'));
    element('grid').hear('keydown', {key: 'Home'});
    element('grid').hear('keydown', {key: 'Enter'});
    const [, , store, lock_] = location.hash.split('/');
    assert.deepStrictEqual([store, decodeURIComponent(lock_)], ['0', name]);
  }
});

test('durations are in two units at most', () => {
  const all = [[NaN, ''], [-5, '0ms'], [849.6, '850ms'], [59_999, '59s'], [200_000, '3m 20s'], [18_120_000, '5h 2m'], [187_200_000, '2d 4h']];
  for (const [ms, text] of all) assert.strictEqual(duration(ms), text);
});
