'use strict';
// The structs and functions of holdfast/holdfast.h for koffi, and nothing else.
const path = require('node:path');
const fs = require('node:fs');
const koffi = require('koffi');
const {byCode, Internal, InvalidArgument} = require('./errors.js');
const given = require('./given.js');

const ABI = 0;
const FILE = `libholdfast-c.so.${ABI}`;

// A type that ends with "?" may be null.
const text = (length) => koffi.array('char', length, 'String');
const arrays = new Map();
const numbers = (type, length) => {
  const array = koffi.array(type, length);
  arrays.set(array, {type, length});
  return array;
};
const structs = {
  error: {
    size: 'uint32_t', code: 'int32_t', retryable: 'uint8_t', outcome_unknown: 'uint8_t', lease_gone: 'uint8_t',
    unused: numbers('uint8_t', 5), operation: text(64), name: text(512), store: text(1024), message: text(4096)},
  wait: {size: 'uint32_t', unused: 'uint32_t', timeout_ns: 'int64_t', stop: 'uintptr_t', queue: 'uintptr_t', tag: 'uint64_t'},
  event: {
    size: 'uint32_t', kind: 'int32_t', tag: 'uint64_t', code: 'int32_t', unused: 'uint32_t', lease: 'uintptr_t', number: 'uint64_t',
    wait_us: 'int64_t'},
  session_options: {
    size: 'uint32_t', lock_order: 'uint8_t', find_deadlocks: 'uint8_t', unused: numbers('uint8_t', 2), lease_ms: 'int64_t',
    store_timeout_ms: 'int64_t', name_prefix: 'const char *?'},
  name_info: {
    size: 'uint32_t', capacity: 'uint32_t', remaining: 'uint32_t', holders: 'uint32_t', waiters: 'uint32_t', unused: 'uint32_t',
    last_fence: 'uint64_t', kind: text(32), holder: text(16)},
  lease_info: {size: 'uint32_t', state: 'int32_t', fence: 'uint64_t', remaining_ns: 'int64_t', name: text(512), short_id: text(16)},
  lock_options: {
    size: 'uint32_t', no_renewal: 'uint8_t', unconfirmed_release: 'uint8_t', unused: numbers('uint8_t', 2), lease_ms: 'int64_t',
    max_hold_ms: 'int64_t', local_time_us: 'int64_t', linger_us: 'int64_t', max_waiters: 'uint64_t', reason: 'const char *?'},
  election_options: {size: 'uint32_t', priority: 'int32_t', lease_ms: 'int64_t', note: 'const char *?'},
  leader: {
    size: 'uint32_t', pid: 'uint32_t', term: 'uint64_t', after_gap: 'uint8_t', unused: numbers('uint8_t', 7), note: text(256),
    host: text(256), program: text(256)},
  redlock_options: {
    size: 'uint32_t', unused: 'uint32_t', lease_ms: 'int64_t', node_timeout_ms: 'int64_t', trust_after_ms: 'int64_t',
    reason: 'const char *?'},
  member: {lock: 'uintptr_t', shared: 'uint32_t', permits: 'uint32_t'},
  rule: {
    tokens: 'uint64_t', per_us: 'int64_t', burst: 'uint64_t', name: 'const char *?', by: 'const char **?', by_count: 'uint32_t',
    interval: 'uint32_t'},
  part: {part: 'const char *', value: 'const char *'},
  decision: {
    size: 'uint32_t', taken: 'uint32_t', wait_us: 'int64_t', limit: 'uint64_t', remaining: 'uint64_t', reset_us: 'int64_t',
    rule: text(256), tokens: 'uint64_t', due_us: numbers('int64_t', 16)},
};
const types = {};  // without names: another copy of this package may have registered the same names
const koffiType = (type) => typeof type === 'string' ? type.replace('?', '') : type;
for (const [name, fields] of Object.entries(structs)) {
  types[name] = koffi.struct(Object.fromEntries(Object.entries(fields).map(([field, type]) => [field, koffiType(type)])));
}

/** A struct with its default values. */
const sized = (name, fields = {}) => ({...blank[name], ...fields, size: koffi.sizeof(types[name])});
const blank = {};
for (const [name, fields] of Object.entries(structs)) {
  blank[name] = Object.fromEntries(Object.entries(fields).map(([field, type]) => {
    if (typeof type !== 'string') return [field, arrays.has(type) ? Array(arrays.get(type).length).fill(0) : ''];
    return [field, type.includes('*') ? null : 0];
  }));
}

// The functions, with the names of their parameters as error messages show them. A handle is a number, or the caller's object ("handle").
// The last parameter is holdfast_error* everywhere.
const H = 'uintptr_t', NAME = 'name: const char *', COUNT = 'count: uint32_t', N = 'n: uint64_t';
const NEW = '_Out_ uintptr_t *', NUMBER = '_Out_ uint32_t *', WAIT = 'wait: const holdfast_wait *?';
const LOCK = 'options: const holdfast_lock_options *', PARTS = ['key: const holdfast_part *?', 'key: uint32_t'];
const DECISION = '_Inout_ holdfast_decision *';
const TAKE = [H, N, ...PARTS, WAIT, DECISION];
const FUNCTIONS = {
  close: ['close', H], stop_open: ['AbortSignal', NEW], stop_request: ['AbortSignal', H], queue_open: ['wait', NEW, 'void *'],
  queue_next_decision: ['wait', H, 'int64_t', '_Inout_ holdfast_event *', DECISION],
  open: ['open', 'url: const char *', 'options: const holdfast_session_options *', NEW],
  session_url: ['Session.url', H, 'void *', 'uint64_t'], show: ['Session.show', H, NAME, '_Inout_ holdfast_name_info *'],
  force_release: ['Session.forceRelease', H, NAME, 'shortId: const char *?', '_Out_ uint64_t *'],
  lease_info_of: ['Lease', H, '_Inout_ holdfast_lease_info *'], lease_fences: ['Lease.fences', H, '_Out_ uint64_t *', '_Inout_ uint32_t *'],
  lease_check: ['Lease.check', H], lease_extend: ['Lease.extend', H, 'length: int64_t'], lease_watch: ['Lease.signal', H, H, 'uint64_t'],
  release: ['Lease.release', H, WAIT],
  mutex: ['Session.mutex', H, NAME, LOCK, NEW], fair_mutex: ['Session.fairMutex', H, NAME, LOCK, NEW],
  shared_mutex: ['Session.sharedMutex', H, NAME, 'options.preference: int', LOCK, NEW],
  semaphore: ['Session.semaphore', H, NAME, 'capacity: uint32_t', LOCK, NEW],
  semaphore_available: ['Semaphore.available', H, NUMBER],
  election: ['Session.election', H, NAME, 'options: const holdfast_election_options *', NEW],
  election_leader: ['Election.leader', H, '_Inout_ holdfast_leader *'], election_observe: ['Election.observe', H, NEW],
  leaders_next: ['Leaders.next', H, WAIT, 'void *'], leaders_found: ['Leaders.next', H, '_Inout_ holdfast_leader *'],
  multi_lock: ['multiLock', 'members: const holdfast_member *', 'members: uint32_t', NEW],
  redlock: ['redlock', 'nodes: const uintptr_t *', 'nodes: uint32_t', NAME, 'options: const holdfast_redlock_options *', NEW],
  acquire: ['Lock.acquire', H, WAIT, NEW], acquire_shared: ['Lock.acquire', H, WAIT, NEW],
  acquire_permits: ['Semaphore.permits', H, COUNT, WAIT, NEW],
  downgrade: ['SharedMutex.downgrade', H, 'lease: handle'], upgrade: ['SharedMutex.tryUpgrade', H, 'lease: handle'],
  latch_open: ['Session.latch', H, NAME, COUNT, 'options.keep: int64_t', NEW],
  latch_count_down: ['Latch.countDown', H, 'n: uint32_t', WAIT], latch_wait: ['Latch.wait', H, WAIT],
  latch_remaining: ['Latch.remaining', H, NUMBER], latch_remove: ['Latch.remove', H],
  barrier_open: ['Session.barrier', H, NAME, COUNT, 'options.lease: int64_t', NEW],
  barrier_arrive_within: ['Barrier.arrive', H, WAIT, 'void *'], barrier_wait: ['Barrier.wait', H, 'arrival: handle', WAIT],
  barrier_arrive_and_wait: ['Barrier.arriveAndWait', H, WAIT], barrier_arrive_and_drop_within: ['Barrier.arriveAndDrop', H, WAIT],
  condition_open: ['Session.condition', H, NAME, NEW], condition_wait: ['Condition.wait', H, 'lease: handle', WAIT, NUMBER],
  condition_notify_one: ['Condition.notifyOne', H, NUMBER], condition_notify_all: ['Condition.notifyAll', H, NUMBER],
  limiter_open: ['Session.limiter', H, NAME, 'rules: const holdfast_rule *', 'rules: uint32_t', 'options.localTokens: uint64_t', NEW],
  limiter_take: ['Limiter.take', ...TAKE], limiter_take_decision: ['Limiter.takeDecision', ...TAKE],
  limiter_try_take: ['Limiter.tryTake', ...TAKE],
  limiter_reserve: ['Limiter.reserve', H, N, 'longestWait: int64_t', ...PARTS, DECISION],
  limiter_peek: ['Limiter.peek', H, N, ...PARTS, DECISION], limiter_refund: ['Limiter.refund', H, 'what: uint64_t', ...PARTS],
  limiter_give_back: ['Limiter.refund', H, 'what: const holdfast_decision *', ...PARTS],
};
const IN_C = {limiter_try_take: 'limiter_take', limiter_take_decision: 'limiter_take'};  // functions with another name in C

function load() {
  const beside = path.join(__dirname, FILE);
  const file = process.env.HOLDFAST_LIBRARY ?? (fs.existsSync(beside) ? beside : FILE);
  let library;
  try {
    library = koffi.load(file);
  } catch (why) {
    throw new Error(`holdfast needs ${FILE}: install it, or set HOLDFAST_LIBRARY to its path (${why.message})`);
  }
  const abi = library.func('uint32_t holdfast_abi()')();
  if (abi !== ABI) throw new Error(`${file} has the interface ${abi}, and this package needs ${ABI}`);
  return library;
}

/** The name of the struct that a parameter points to. */
const structOf = (type) => /holdfast_(\w+) \*$/.exec(type)?.[1];

function inKoffi(type) {
  if (type === 'handle') return H;
  if (!structOf(type)) return type;
  const pointer = koffi.pointer(types[structOf(type)]);
  return type.startsWith('const') ? pointer : koffi.inout(pointer);
}

const ofField = (field) => field.replace(/_[mun]s$/, '').replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

function checkOfStruct(name) {
  const checks = Object.entries(structs[name]).map(([field, type]) =>
    ({field, path: name === 'part' ? '' : `.${ofField(field)}`, check: checkOf(type)}));
  const one = (value, where) => {
    const there = {};
    for (const {field, path, check} of checks) there[field] = check(value[field], where + path);
    return there;
  };
  const each = name === 'part' ? (part, at, where) => `${where}[${JSON.stringify(part.part)}]` : (_, at, where) => `${where}[${at}]`;
  return (value, where) => Array.isArray(value) ? value.map((it, at) => one(it, each(it, at, where))) : one(value, where);
}

/** A function `(value, where)` for the type of a parameter or a field. It returns a checked copy for koffi, or throws. Without the check,
 *  koffi would take a number for the address of a text, and would read beyond the end of an array. */
function checkOf(type) {
  if (arrays.has(type)) {
    const {type: element, length} = arrays.get(type);
    return (value, where) => {
      const there = given.list(value, where, checkOf(element));
      if (there.length === length) return there;
      throw new InvalidArgument(`${where}: ${there.length} numbers, and ${length} belong there`);
    };
  }
  if (typeof type !== 'string') return given.text;
  if (type.endsWith('?')) {
    const check = checkOf(type.slice(0, -1));
    return (value, where) => value === null ? null : check(value, where);
  }
  if (/^_(Out|Inout)_ |^void \*$/.test(type)) return (value) => value;  // made by this package, and written by the library
  if (type === H) return (value, where) => typeof value === 'number' ? given.handle({_known: value}, where) : given.handle(value, where);
  if (type === 'handle') return given.handle;
  if (given.WHOLE[type]) return (value, where) => given.whole(type, value, where);
  if (type === 'const char *') return given.text;
  if (type === 'const char **') return (value, where) => given.list(value, where, given.text);
  if (type === 'const uintptr_t *') return (value, where) => given.list(value, where, given.handle);
  if (type.startsWith('const') && structs[structOf(type)]) return checkOfStruct(structOf(type));
  throw new Error(`nothing says what belongs into a ${type}`);
}

const library = load();
const functions = {};
const checks = {};
for (const [name, [method, ...parameters]] of Object.entries(FUNCTIONS)) {
  const takes = parameters.map((parameter) => {
    const [type, called = 'this'] = parameter.split(': ').reverse();
    return {type, called};
  });
  functions[name] = library.func(`holdfast_${IN_C[name] ?? name}`, 'int', [...takes.map(({type}) => inKoffi(koffiType(type))), 'void *']);
  checks[name] = takes.map(({type, called}) => ({check: checkOf(type), where: `${method}: ${called}`}));
}

/** Memory that the library may write while no JavaScript runs. */
function room(struct) {
  const there = Buffer.alloc(koffi.sizeof(types[struct]));
  there.writeUInt32LE(there.length, 0);
  return there;
}

const UNDER_WAY = -1;  // no call ends with this code
const CODE_AT = koffi.offsetof(types.error, 'code');

// Rooms that no call uses. They are outside of JavaScript's heap, so a new one for each call would cost more than most calls. Many calls
// may wait for their turn at the same time, so not all of their handles are kept.
const whys = [];
const handles = [];

function newWhy() {
  const why = whys.pop() ?? room('error');
  why.writeInt32LE(UNDER_WAY, CODE_AT);
  return why;
}

function errorOf(code, why) {
  const e = koffi.decode(why, types.error);
  const kind = byCode.get(code) ?? Internal;
  return new kind(e.message || kind.name, {
    operation: e.operation, name: e.name, store: e.store, retryable: e.retryable === 1, outcomeUnknown: e.outcome_unknown === 1,
    leaseGone: e.lease_gone === 1});
}

/** The arguments as koffi takes them: a Handle stands for its number. */
const plain = (name, args) => checks[name].map(({check, where}, at) => check(args[at], where));

/** Calls on this thread: only for functions that cost no round trip. */
function call(name, ...args) {
  const why = newWhy();
  const code = functions[name](...plain(name, args), why);
  if (code !== 0) throw errorOf(code, why);
  whys.push(why);
}

/** As call(), for a function whose last parameter receives a new handle. Returns that handle. */
function made(name, ...args) {
  const there = [0];
  call(name, ...args, there);
  return there[0];
}

/** The size of the thread pool, read in the same way as libuv reads it. */
function threadsOfPool() {
  const said = Number.parseInt(process.env.UV_THREADPOOL_SIZE ?? '4', 10) || 1;
  return said < 0 ? 1024 : said;
}

// Commands leave one thread of the pool to the calls that report losses and ended waits, because in an outage commands take long. koffi
// refuses more than 256 calls.
const MOST_ASIDE = Math.min(Math.max(threadsOfPool() - 1, 1), 128);
let aside = 0;
const later = [];  // calls that have not begun, because too many others are under way
const underWay = new Set();

/** Calls on a thread of Node's pool, which may begin the call late. `granted()` returns the handle that the call has made, or 0, also
 *  before `then(failed, code, why)` is called. */
function begin(name, args, granted, then) {
  beginChecked(name, plain(name, args), args, granted, then);
}

/** A Handle in `kept` is not collected before the call has ended. If koffi refuses the call, it calls back at once, or throws. Nothing may
 *  use `why` after `then`: the next call writes to it. */
function beginChecked(name, checked, kept, granted, then) {
  const call = {why: newWhy(), granted};
  underWay.add(call);
  try {
    functions[name].async(...checked, call.why, (failed, code) => {
      kept.length = 0;  // kept until here
      underWay.delete(call);
      then(failed, code, call.why);
      whys.push(call.why);
    });
  } catch (why) {
    underWay.delete(call);
    throw why;
  }
}

/** Functions that must not run on the pool. For the library, the thread that arrives at a barrier is the participant, and on the pool that
 *  could be another thread each time. */
const OF_ITS_THREAD = /^barrier_/;

/** As begin(), but returns a promise. Any number of these calls may be under way. */
function callAside(name, ...args) {
  if (OF_ITS_THREAD.test(name)) throw new Error(`${name} belongs to the thread that calls it: use outcome()`);
  const there = FUNCTIONS[name].at(-1) === NEW ? args.pop() : null;
  const handle = handles.pop() ?? Buffer.alloc(8);
  handle.fill(0);
  if (there) args.push(handle);
  const granted = () => Number(handle.readBigUInt64LE());
  return new Promise((resolve, reject) => {
    const checked = plain(name, args);
    const ended = (failed, code, why) => {
      --aside;
      while (aside < MOST_ASIDE && later.length > 0) later.shift()();
      if (failed) return reject(failed);
      if (code !== 0) return reject(errorOf(code, why));
      if (there) there[0] = granted();
      if (handles.length < MOST_ASIDE) handles.push(handle);
      resolve();
    };
    const go = () => {
      ++aside;
      try {
        beginChecked(name, checked, args, granted, ended);
      } catch (why) {
        --aside;
        reject(why);
      }
    };
    if (aside < MOST_ASIDE) go();
    else later.push(go);
  });
}

/** Waits for the calls that are under way, as a thread or program waits at its end anyway, and closes the handles that they make, which no
 *  other code receives. */
function endAll() {
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  for (const {why, granted} of underWay) {
    while (why.readInt32LE(CODE_AT) === UNDER_WAY) Atomics.wait(nobody, 0, 0, 1);
    if (granted() !== 0) functions.close(granted(), null);
  }
}

const closeAll = library.func('void holdfast_close_all()');
const version = library.func('const char *holdfast_version()')();

module.exports = {koffi, FUNCTIONS, IN_C, structs, types, sized, room, functions, call, made, begin, callAside, endAll, errorOf, closeAll,
                  version};
