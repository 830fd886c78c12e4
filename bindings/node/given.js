'use strict';
// Converts the arguments of callers to those of the library. A wrong type is a TypeError. A value of the right type that the library cannot
// take is InvalidArgument or InvalidName. `where` says which argument it is. Messages quote no text, because it may be a secret.
const {InvalidArgument, InvalidName} = require('./errors.js');

const WHOLE = {
  uint8_t: [0n, 2n ** 8n - 1n], int: [-(2n ** 31n), 2n ** 31n - 1n], int32_t: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32_t: [0n, 2n ** 32n - 1n], int64_t: [-(2n ** 63n), 2n ** 63n - 1n], uint64_t: [0n, 2n ** 64n - 1n]};

function typeOf(value) {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

const wrong = (where, wanted, value) => new TypeError(`${where} must be ${wanted}, and is ${typeOf(value)}`);
const operationOf = (where) => where.split(':')[0];
const refused = (where, why) => new InvalidArgument(`${where}: ${why}`, {operation: operationOf(where)});

function text(value, where) {
  if (typeof value !== 'string') throw wrong(where, 'a string', value);
  if (/[\0\p{Cs}]/u.test(value)) {
    throw new InvalidName(`${where}: a text with a zero byte or a lone surrogate in it cannot be passed on`,
                          {operation: operationOf(where)});
  }
  return value;
}

/** Checks the range. koffi would silently change a number that does not fit, and each number from 2^63 on that is not a bigint. */
function whole(type, value, where) {
  if (typeof value !== 'number' && typeof value !== 'bigint') throw wrong(where, 'a whole number', value);
  const [least, most] = WHOLE[type];
  if (typeof value === 'number' && !Number.isInteger(value) || value < least || value > most) {
    throw refused(where, `${value} is not a whole number from ${least} to ${most}`);
  }
  return Number.isSafeInteger(Number(value)) ? Number(value) + 0 : BigInt(value);
}

function number(value, where) {
  if (typeof value !== 'number') throw wrong(where, 'a number', value);
  return value;
}

function flag(value, where) {
  if (typeof value !== 'boolean') throw wrong(where, 'true or false', value);
  return value;
}

/** Converts milliseconds to a number of units, `perMs` of which are a millisecond. null and undefined become 0, which means the default.
 *  0 becomes `zero`; without `zero`, 0 is refused like every duration shorter than a unit. */
function duration(value, where, perMs, zero) {
  if (value === undefined || value === null) return 0;
  if (number(value, where) === 0 && zero !== undefined) return zero;
  if (!Number.isFinite(value)) throw refused(where, `${value} ms is no duration`);
  if (Math.abs(value * perMs) < 1) throw refused(where, `${value} ms is too short: the least is ${1 / perMs} ms`);
  const counted = Math.round(value * perMs);
  if (Math.abs(counted) >= 2 ** 63) throw refused(where, `${value} ms is too long`);
  return counted;
}

/** Calls `each` for every element, also for a missing one, and returns the results as a new array. */
function list(value, where, each = (one) => one) {
  if (!Array.isArray(value)) throw wrong(where, 'an array', value);
  return Array.from(value, (one, at) => each(one, `${where}[${at}]`));
}

function object(value, where) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(where, 'an object', value);
  return value;
}

const isFunction = (value) => typeof value === 'function';

function action(value, where) {
  if (!isFunction(value)) throw wrong(where, 'a function', value);
  return value;
}

/** The handle of an object of this package, also if the object is closed. */
function handle(value, where) {
  if (!Number.isSafeInteger(value?._known)) throw wrong(where, 'an object of this package', value);
  return value._known;
}

/** Refuses unknown options, because a misspelt option would have no effect. */
function nothingElse(value, known, where) {
  const other = Object.keys(value).find((name) => !known.has(name));
  if (other !== undefined) throw new TypeError(`${where}: there is no ${other}; there is ${[...known].join(', ')}`);
}

const WAIT = new Set(['timeout', 'signal']);

/** How a call waits. Each property is read once. */
function wait(value, where) {
  if (value === undefined) return {};
  const {timeout, signal} = object(value, where);
  if (value instanceof AbortSignal) throw new TypeError(`${where} must be an object with the signal: {signal}`);
  nothingElse(value, WAIT, where);
  if (timeout !== undefined && timeout !== null && Number.isNaN(number(timeout, `${where}.timeout`))) {
    throw refused(`${where}.timeout`, `${timeout} is no time`);
  }
  if (signal !== undefined && signal !== null) {
    const known = typeof signal.aborted === 'boolean' && [signal.addEventListener, signal.removeEventListener].every(isFunction);
    if (!known) throw wrong(`${where}.signal`, 'an AbortSignal', signal);
  }
  return {timeout, signal};
}

/** Reads an object with options. An option that is null counts as not given. Call done() at the end: it refuses all options that were not
 *  read. */
class Options {
  #given;
  #where;
  #read = new Set();

  constructor(given, where) {
    this.#given = given === undefined ? {} : object(given, where);
    this.#where = where;
  }

  get(name, otherwise = null) {
    this.#read.add(name);
    return this.#given[name] ?? otherwise;
  }

  done() {
    nothingElse(this.#given, this.#read, this.#where);
  }

  number(name, otherwise) {
    return number(this.get(name, otherwise), `${this.#where}.${name}`);
  }

  flag(name, otherwise) {
    return flag(this.get(name, otherwise), `${this.#where}.${name}`);
  }

  text(name, otherwise) {
    return text(this.get(name, otherwise), `${this.#where}.${name}`);
  }

  list(name, otherwise) {
    return list(this.get(name, otherwise), `${this.#where}.${name}`);
  }

  duration(name, perMs = 1, zero = undefined) {
    return duration(this.get(name), `${this.#where}.${name}`, perMs, zero);
  }
}

module.exports = {WHOLE, wrong, text, whole, number, duration, list, object, action, handle, wait, Options};
