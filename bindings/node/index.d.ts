// holdfast for Node. Durations and timeouts are milliseconds, fences are bigints. Functions that return a promise do not block the event
// loop; close(), `using` and the garbage collector block it for one round trip if they end a lease, a session, a barrier that has
// participants, or a lock that lingers. A call costs as many round trips as the same call in C++ (docs/). A wait rejects with Busy (one
// try), TimedOut or Cancelled, and with Unavailable if the store is away.

/** How a call waits. */
export interface Wait {
  /** 0 or negative: one try. Not given: without a limit. */
  timeout?: number;
  /** Aborting it ends the wait with Cancelled. */
  signal?: AbortSignal;
}

export class HoldfastError extends Error {
  /** The number of the code, as in holdfast/c/error.h. */
  readonly code: number;
  readonly operation: string;
  readonly lockName: string;
  /** Never with a password. */
  readonly store: string;
  /** The same call may succeed later. */
  readonly retryable: boolean;
  /** The reply was lost, so the call may have been carried out. Repeating it is safe, except for a countDown, a limiter's take, a
   *  notification, and the very last arriveAndDrop of a barrier. */
  readonly outcomeUnknown: boolean;
  /** The lease of this call no longer protects anything. */
  readonly leaseGone: boolean;
}
export class Busy extends HoldfastError {}
export class TimedOut extends HoldfastError {}
export class Cancelled extends HoldfastError {}
export class Lost extends HoldfastError {}
export class NotOwner extends HoldfastError {}
export class Unavailable extends HoldfastError {}
export class Overloaded extends HoldfastError {}
export class Deadlock extends HoldfastError {}
export class KindMismatch extends HoldfastError {}
export class CapacityMismatch extends HoldfastError {}
export class Unsupported extends HoldfastError {}
export class InvalidName extends HoldfastError {}
export class InvalidArgument extends HoldfastError {}
export class ForeignData extends HoldfastError {}
export class NewerFormat extends HoldfastError {}
export class Corrupt extends HoldfastError {}
export class ReadOnly extends HoldfastError {}
export class NoSpace extends HoldfastError {}
export class NotPermitted extends HoldfastError {}
export class Forked extends HoldfastError {}
export class Internal extends HoldfastError {}

interface Handle {
  /** Closes the handle. A second call does nothing. */
  close(): void;
  [Symbol.dispose](): void;
}

/** Proves that the lock is held. `await using` releases it at the end of the block. A lease that is garbage-collected is released, so
 *  keep a reference to it. */
export interface Lease extends Handle {
  /** A number greater than that of every earlier holder. Pass it to the resource, which refuses smaller ones. */
  readonly fence: bigint;
  /** The fence of each member of a multiLock; of another lock its one fence. */
  readonly fences: bigint[];
  readonly state: 'held' | 'suspect' | 'lost' | 'released';
  readonly lost: boolean;
  /** How long the lock is certain to be held without another renewal. */
  readonly remaining: number;
  readonly name: string;
  readonly shortId: string;
  /** Aborted when the lease is lost, before another holder can get the lock. If an error keeps the package from watching the lease, the
   *  signal is aborted with that error. While a wait for a condition has the lease, that error is NotOwner: read the property again after
   *  the wait. Renewal continues while JavaScript is busy. The report of a loss needs the event loop and a thread of Node's pool. The
   *  commands of this JavaScript thread leave one thread of the pool free; other work of the pool does not.
   *  The signal does not keep the lease alive: if nothing else refers to the lease, the signal is aborted and the lease is released. */
  readonly signal: AbortSignal;
  /** Throws Lost unless the lock is held. */
  check(): void;
  /** Renews the lease now: for that long, or for its old length. */
  extend(length?: number): Promise<void>;
  /** Rejects with Lost if the lease had ended before; with NotOwner if it was released already, or while a wait for a condition uses it. */
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A lock. It belongs to no task: whichever code has its lease holds it. */
export interface Lock extends Handle {
  acquire(wait?: Wait): Promise<Lease>;
  /** Resolves to null if the lock is not free in time. Without a timeout it is one try. */
  tryAcquire(wait?: Wait): Promise<Lease | null>;
  /** Does the work under the lock, and then releases the lock, unless the work has released it. Rejects with Lost if the lock was lost
   *  before that, and with NotOwner if a wait for a condition has given it up. */
  with<T>(work: (lease: Lease) => T | Promise<T>, wait?: Wait): Promise<T>;
}

export interface SharedMutex extends Lock {
  /** The lock of readers. */
  shared(): Lock;
  downgrade(lease: Lease): Promise<void>;
  /** Resolves to true if this was the only reader: now it is the writer. */
  tryUpgrade(lease: Lease): Promise<boolean>;
}

export interface Semaphore extends Lock {
  /** Takes that many permits together, or none. */
  permits(count: number): Lock;
  available(): Promise<number>;
}

export interface Leader {
  term: bigint;
  note: string;
  host: string;
  pid: number;
  program: string;
  /** Other leaders may have been missed since the previous one. */
  afterGap: boolean;
}

export interface Leaders extends Handle {
  /** The next leader after the one that was returned last. One call at a time. Polls twice a second. */
  next(wait?: Wait): Promise<Leader>;
}

/** Acquiring it is leading; the fence is the term. */
export interface Election extends Lock {
  leader(): Promise<Leader | null>;
  observe(): Leaders;
}

export interface Latch extends Handle {
  countDown(n?: number): Promise<void>;
  wait(wait?: Wait): Promise<void>;
  remaining(): Promise<number>;
  remove(): Promise<void>;
}

/** One arrival in a phase of a barrier. It still counts if this object is closed or collected. */
export interface Arrival extends Handle {}

/** Make one Barrier for each participant. If each call on it begins when the one before it has ended, it is one participant. After close()
 *  its waits reject with Cancelled. */
export interface Barrier extends Handle {
  /** Does not wait for the others. One exception: if an earlier arrival of this thread still counts, and the program has no Arrival for
   *  it, this call first waits for the end of that phase. After TimedOut and Cancelled the arrival may still count: call it again. */
  arrive(wait?: Wait): Promise<Arrival>;
  /** Until all have arrived; closes the arrival. Rejects with Lost, once, if a participant died. After TimedOut and Cancelled the arrival
   *  still counts, and can be waited for again. */
  wait(arrival: Arrival, wait?: Wait): Promise<void>;
  /** Rejects with Lost, once, if a participant died. After TimedOut and Cancelled the arrival counts if the store had answered it, else it
   *  may count. The next arrival first waits for the end of a phase in which it counts. Two calls at the same time belong to two
   *  participants. */
  arriveAndWait(wait?: Wait): Promise<void>;
  /** Arrives, and drops out. Does not wait for the others, unless an arrival of this thread still counts: then it first waits for the
   *  end of that phase. After TimedOut and Cancelled the participant may not have dropped out: call it again. */
  arriveAndDrop(wait?: Wait): Promise<void>;
}

export interface Condition extends Handle {
  /** Resolves to whether a notification came in time. The mutex is then held again by the same lease, with a new fence: check the
   *  condition, and wait again if it is false. After an error other than NotOwner, InvalidArgument and Unsupported the mutex is not held:
   *  the lease is released, and its signal aborted. It also rejects with Cancelled if the lease was closed meanwhile. */
  wait(lease: Lease, wait?: Wait): Promise<boolean>;
  notifyOne(): Promise<number>;
  notifyAll(): Promise<number>;
}

export interface Rule {
  tokens: number;
  /** The time in which `tokens` come back, in milliseconds; 1000 if not given. */
  per?: number;
  burst?: number;
  by?: string[];
  interval?: boolean;
  name?: string;
}

export interface Decision {
  taken: boolean;
  /** Refused: until it might be taken. Reserved: until it counts. Taken by takeDecision(): how long that took. */
  wait: number;
  limit: number;
  remaining: number;
  reset: number;
  rule: string;
  /** How many were taken. `due` says when the bucket of each rule has them, in microseconds of the store's clock. */
  tokens: number;
  due: (number | bigint)[];
}

export interface Limiter extends Handle {
  tryTake(n?: number, key?: Record<string, string>): Promise<Decision>;
  /** Waits until the tokens are there. Resolves to false, and takes nothing, if they would not be there in time. */
  take(n?: number, key?: Record<string, string>, wait?: Wait): Promise<boolean>;
  /** As take(), with the whole decision, which refund() takes. Look at its `taken`: every decision counts as true in a condition. */
  takeDecision(n?: number, key?: Record<string, string>, wait?: Wait): Promise<Decision>;
  reserve(n: number, longestWait: number, key?: Record<string, string>): Promise<Decision>;
  peek(n?: number, key?: Record<string, string>): Promise<Decision>;
  /** Gives back the tokens that a decision took and nobody used. No more goes through than the rules allow. A number gives back that
   *  many tokens, as if they had been taken now. */
  refund(what?: number | Decision, key?: Record<string, string>): Promise<void>;
}

export interface LockOptions {
  /** Not given: the session's. */
  lease?: number;
  renew?: boolean;
  maxHold?: number;
  localTime?: number;
  linger?: number;
  maxWaiters?: number;
  unconfirmedRelease?: boolean;
  /** For people: shown by `holdfast list`. */
  reason?: string;
}

export interface NameInfo {
  kind: string;
  capacity: number;
  remaining: number;
  holders: number;
  waiters: number;
  lastFence: bigint;
  /** The short id of the first holder. Empty if nobody holds it, and perhaps if another program does. */
  holder: string;
}

/** A connection to a store. Locks and leases that were made with it outlive this object. */
export interface Session extends Handle {
  /** Without passwords. */
  readonly url: string;
  mutex(name: string, options?: LockOptions): Lock;
  /** As mutex(), on the same names, but strictly in order of arrival across processes. */
  fairMutex(name: string, options?: LockOptions): Lock;
  sharedMutex(name: string, options?: LockOptions & {preference?: 'fifo' | 'readers' | 'writers'}): SharedMutex;
  semaphore(name: string, capacity: number, options?: LockOptions): Semaphore;
  /** Every program can read the note. The waiting candidate with the greatest `priority` (any 32-bit integer) leads next. */
  election(name: string, options?: {note?: string; priority?: number; lease?: number}): Election;
  latch(name: string, count: number, options?: {keep?: number}): Latch;
  barrier(name: string, count: number, options?: {lease?: number}): Barrier;
  condition(name: string): Condition;
  limiter(name: string, rules: Rule[], options?: {localTokens?: number}): Limiter;
  show(name: string): Promise<NameInfo>;
  /** Takes the lock away from its holders, or from the one with this short id. An empty short id rejects with InvalidArgument. Resolves
   *  to how many holders were removed. */
  forceRelease(name: string, shortId?: string | null): Promise<number>;
}

export interface SessionOptions {
  lease?: number;
  storeTimeout?: number;
  namePrefix?: string;
}

/**
 * Opens the store that the URL names: memory:, sqlite:PATH, redis://…, and the others of docs/stores. Waits storeTimeout (10 s) for a
 * store that is away, and then rejects.
 */
export function open(url: string, options?: SessionOptions): Promise<Session>;
/** All of several locks, or none. */
export function multiLock(...members: Lock[]): Lock;
/** A lock that a majority of independent stores grants. A trustAfter of 0 is "off". */
export function redlock(nodes: Session[], name: string,
                        options?: {lease?: number; nodeTimeout?: number; trustAfter?: number; reason?: string}): Lock;
export const version: string;

/** For `instanceof`. Objects come from the functions and methods above. */
type Kind<T> = Function & {readonly prototype: T};
export const Session: Kind<Session>;
export const Lease: Kind<Lease>;
export const Lock: Kind<Lock>;
export const SharedMutex: Kind<SharedMutex>;
export const Semaphore: Kind<Semaphore>;
export const Election: Kind<Election>;
export const Leaders: Kind<Leaders>;
export const MultiLock: Kind<Lock>;
export const Redlock: Kind<Lock>;
export const Latch: Kind<Latch>;
export const Arrival: Kind<Arrival>;
export const Barrier: Kind<Barrier>;
export const Condition: Kind<Condition>;
export const Limiter: Kind<Limiter>;
