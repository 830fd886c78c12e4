'use strict';
// libholdfast-c as koffi sees it: the structs and functions of holdfast/holdfast.h, and nothing else.
const path = require('node:path');
const fs = require('node:fs');
const koffi = require('koffi');
const {byCode, Internal, InvalidArgument, InvalidName} = require('./errors.js');

const ABI = 0;
const NAME = `libholdfast-c.so.${ABI}`;

const text = (length) => koffi.array('char', length, 'String');
const lengths = new Map();
const numbers = (type, length) => {
  const array = koffi.array(type, length);
  lengths.set(array, length);
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
    store_timeout_ms: 'int64_t', name_prefix: 'const char *'},
  name_info: {
    size: 'uint32_t', capacity: 'uint32_t', remaining: 'uint32_t', holders: 'uint32_t', waiters: 'uint32_t', unused: 'uint32_t',
    last_fence: 'uint64_t', kind: text(32), holder: text(16)},
  lease_info: {size: 'uint32_t', state: 'int32_t', fence: 'uint64_t', remaining_ns: 'int64_t', name: text(512), short_id: text(16)},
  lock_options: {
    size: 'uint32_t', no_renewal: 'uint8_t', unconfirmed_release: 'uint8_t', unused: numbers('uint8_t', 2), lease_ms: 'int64_t',
    max_hold_ms: 'int64_t', local_time_us: 'int64_t', linger_us: 'int64_t', max_waiters: 'uint64_t', reason: 'const char *'},
  election_options: {size: 'uint32_t', priority: 'int32_t', lease_ms: 'int64_t', note: 'const char *'},
  leader: {
    size: 'uint32_t', pid: 'uint32_t', term: 'uint64_t', after_gap: 'uint8_t', unused: numbers('uint8_t', 7), note: text(256),
    host: text(256), program: text(256)},
  redlock_options: {
    size: 'uint32_t', unused: 'uint32_t', lease_ms: 'int64_t', node_timeout_ms: 'int64_t', trust_after_ms: 'int64_t',
    reason: 'const char *'},
  member: {lock: 'uintptr_t', shared: 'uint32_t', permits: 'uint32_t'},
  rule: {
    tokens: 'uint64_t', per_us: 'int64_t', burst: 'uint64_t', name: 'const char *', by: 'const char **', by_count: 'uint32_t',
    interval: 'uint32_t'},
  part: {part: 'const char *', value: 'const char *'},
  decision: {
    size: 'uint32_t', taken: 'uint32_t', wait_us: 'int64_t', limit: 'uint64_t', remaining: 'uint64_t', reset_us: 'int64_t',
    rule: text(256), tokens: 'uint64_t', due_us: numbers('int64_t', 16)},
};
const types = {};  // without names, which another copy of this package would have taken already
for (const [name, fields] of Object.entries(structs)) types[name] = koffi.struct(fields);

/** What a struct begins as. */
const sized = (name, fields = {}) => ({...blank[name], ...fields, size: koffi.sizeof(types[name])});
const blank = {};
for (const [name, fields] of Object.entries(structs)) {
  blank[name] = Object.fromEntries(Object.entries(fields).map(([field, type]) => {
    if (typeof type !== 'string') return [field, lengths.has(type) ? Array(lengths.get(type)).fill(0) : ''];
    return [field, type.includes('*') ? null : 0];
  }));
}

// Handles are numbers; the last parameter is holdfast_error* everywhere.
const H = 'uintptr_t', S = 'const char *', NEW = '_Out_ uintptr_t *', N = '_Out_ uint32_t *', WAIT = 'const holdfast_wait *';
const KEY = 'const holdfast_part *';
const FUNCTIONS = {
  close: [H], stop_open: [NEW], stop_request: [H], queue_open: [NEW, 'void *'], queue_next: [H, 'int64_t', '_Inout_ holdfast_event *'],
  open: [S, 'const holdfast_session_options *', NEW], show: [H, S, '_Inout_ holdfast_name_info *'],
  force_release: [H, S, S, '_Out_ uint64_t *'],
  lease_info_of: [H, '_Inout_ holdfast_lease_info *'], lease_fences: [H, '_Out_ uint64_t *', '_Inout_ uint32_t *'], lease_check: [H],
  lease_extend: [H, 'int64_t'], lease_watch: [H, H, 'uint64_t'], release: [H, WAIT],
  mutex: [H, S, 'const holdfast_lock_options *', NEW], fair_mutex: [H, S, 'const holdfast_lock_options *', NEW],
  shared_mutex: [H, S, 'int', 'const holdfast_lock_options *', NEW], semaphore: [H, S, 'uint32_t', 'const holdfast_lock_options *', NEW],
  semaphore_available: [H, N], election: [H, S, 'const holdfast_election_options *', NEW],
  election_leader: [H, '_Inout_ holdfast_leader *'], election_observe: [H, NEW],
  leaders_next: [H, WAIT, '_Inout_ holdfast_leader *'], multi_lock: ['const holdfast_member *', 'uint32_t', NEW],
  redlock: ['const uintptr_t *', 'uint32_t', S, 'const holdfast_redlock_options *', NEW],
  acquire: [H, WAIT, NEW], acquire_shared: [H, WAIT, NEW], acquire_permits: [H, 'uint32_t', WAIT, NEW],
  downgrade: [H, H], upgrade: [H, H],
  latch_open: [H, S, 'uint32_t', 'int64_t', NEW], latch_count_down: [H, 'uint32_t', WAIT], latch_wait: [H, WAIT],
  latch_remaining: [H, N], latch_remove: [H],
  barrier_open: [H, S, 'uint32_t', 'int64_t', NEW], barrier_arrive_and_wait: [H, WAIT], barrier_arrive_and_drop: [H],
  condition_open: [H, S, NEW], condition_wait: [H, H, WAIT, N], condition_notify_one: [H, N], condition_notify_all: [H, N],
  limiter_open: [H, S, 'const holdfast_rule *', 'uint32_t', 'uint64_t', NEW],
  limiter_take: [H, 'uint64_t', KEY, 'uint32_t', WAIT, '_Inout_ holdfast_decision *'],
  limiter_reserve: [H, 'uint64_t', 'int64_t', KEY, 'uint32_t', '_Inout_ holdfast_decision *'],
  limiter_peek: [H, 'uint64_t', KEY, 'uint32_t', '_Inout_ holdfast_decision *'], limiter_refund: [H, 'uint64_t', KEY, 'uint32_t'],
  limiter_give_back: [H, 'const holdfast_decision *', KEY, 'uint32_t'],
};

function load() {
  const beside = path.join(__dirname, NAME);
  const file = process.env.HOLDFAST_LIBRARY ?? (fs.existsSync(beside) ? beside : NAME);
  let library;
  try {
    library = koffi.load(file);
  } catch (why) {
    throw new Error(`holdfast needs ${NAME}: install it, or set HOLDFAST_LIBRARY to its path (${why.message})`);
  }
  const abi = library.func('uint32_t holdfast_abi()')();
  if (abi !== ABI) throw new Error(`${file} has the interface ${abi}, and this package needs ${ABI}`);
  return library;
}

/** The name of the struct that a parameter points to. */
const structOf = (type) => /holdfast_(\w+) \*$/.exec(type)?.[1];

function inKoffi(type) {
  const struct = structOf(type);
  if (!struct) return type;
  const pointer = koffi.pointer(types[struct]);
  return type.startsWith('const') ? pointer : koffi.inout(pointer);
}

const library = load();
const functions = {};
for (const [name, takes] of Object.entries(FUNCTIONS)) {
  functions[name] = library.func(`holdfast_${name}`, 'int', [...takes.map(inKoffi), 'void *']);
}

/** For what is written while no JavaScript runs. */
function room(struct) {
  const there = Buffer.alloc(koffi.sizeof(types[struct]));
  there.writeUInt32LE(there.length, 0);
  return there;
}

const UNDER_WAY = -1;  // no call ends with this code
const CODE_AT = koffi.offsetof(types.error, 'code');

function newWhy() {
  const why = room('error');
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

const WHOLE = {
  uint8_t: [0, 2 ** 8 - 1], int: [-(2 ** 31), 2 ** 31 - 1], int32_t: [-(2 ** 31), 2 ** 31 - 1], uint32_t: [0, 2 ** 32 - 1],
  int64_t: [-(2n ** 63n), 2n ** 63n - 1n], uint64_t: [0, 2n ** 64n - 1n]};

/** What koffi would cut or change without a word is refused: numbers that do not fit, and texts with a zero byte or half a pair. */
function refuseCut(type, value, what) {
  if (value === null || typeof type !== 'string') return;
  if (WHOLE[type]) {
    const [least, most] = WHOLE[type];
    if (typeof value !== 'bigint' && !Number.isInteger(value) || value < least || value > most) {
      throw new InvalidArgument(`${what}: ${value} is not a whole number from ${least} to ${most}`, {operation: what});
    }
  } else if (type.startsWith('const char *')) {
    for (const one of [value].flat()) {
      if (/[\0\p{Cs}]/u.test(String(one))) {
        throw new InvalidName('a text with a zero byte or a lone surrogate in it cannot be passed on', {operation: what});
      }
    }
  } else {
    const struct = type.startsWith('const') && structs[structOf(type)];
    if (!struct) return;
    for (const one of [value].flat()) {
      for (const [field, kind] of Object.entries(struct)) refuseCut(kind, one[field], what);
    }
  }
}

/** The arguments as koffi takes them: a Handle stands for its number. */
function plain(name, given) {
  return given.map((value, at) => {
    const type = FUNCTIONS[name][at];
    if (type === H && typeof value === 'object') return value._known;
    refuseCut(type, value, name);
    return value;
  });
}

/** On this thread: only for what takes no round trip. */
function call(name, ...given) {
  const why = newWhy();
  const code = functions[name](...plain(name, given), why);
  if (code !== 0) throw errorOf(code, why);
}

/** The same for a function whose last parameter receives a handle, which is returned. */
function made(name, ...given) {
  const there = [0];
  call(name, ...given, there);
  return there[0];
}

const MOST = 128;  // koffi refuses more than 256
const underWay = new Set();
const later = [];  // calls that are not begun, because so many are

/** On a thread of Node's pool, which may begin it late: a Handle that was given is not collected before the call has ended.
 *  `granted()` is the handle that the call has given, or 0, also before `then(failed, code, why)` is called. */
function begin(name, given, granted, then) {
  const call = {why: newWhy(), granted};
  functions[name].async(...plain(name, given), call.why, (failed, code) => {
    given.length = 0;  // until here
    underWay.delete(call);
    while (underWay.size < MOST && later.length > 0) later.shift()();
    then(failed, code, call.why);
  });
  underWay.add(call);
}

/** A promise of the same, of any number at once. */
function callAside(name, ...given) {
  const there = FUNCTIONS[name].at(-1) === NEW ? given.pop() : null;
  const handle = Buffer.alloc(8);
  if (there) given.push(handle);
  const granted = () => Number(handle.readBigUInt64LE());
  return new Promise((resolve, reject) => {
    const ended = (failed, code, why) => {
      if (failed) return reject(failed);
      if (code !== 0) return reject(errorOf(code, why));
      if (there) there[0] = granted();
      resolve();
    };
    const go = () => {
      try {
        begin(name, given, granted, ended);
      } catch (why) {
        reject(why);
      }
    };
    if (underWay.size < MOST) go();
    else later.push(go);
  });
}

/** Waits for the calls under way, as a thread or a program that ends does anyway, and closes what they give: nobody else will get it. */
function endAll() {
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  for (const {why, granted} of underWay) {
    while (why.readInt32LE(CODE_AT) === UNDER_WAY) Atomics.wait(nobody, 0, 0, 1);
    if (granted() !== 0) functions.close(granted(), null);
  }
}

const closeAll = library.func('void holdfast_close_all()');
const version = library.func('const char *holdfast_version()')();

module.exports = {koffi, structs, types, sized, room, functions, call, made, begin, callAside, endAll, errorOf, closeAll, version};
