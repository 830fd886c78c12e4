// holdfast for Node. Durations and timeouts are milliseconds, fences are bigints. What gives a promise does not block the event loop;
// close() and `using` of a lease block it for one round trip. What a call costs in round trips is what the same call costs in C++
// (docs/). A wait that is refused, over or called off rejects with Busy,
// TimedOut or Cancelled, a store that is away with Unavailable.

/** How a call waits. */
export interface Wait {
  /** 0: one try. Not given: without a limit. */
  timeout?: number;
  /** Calls the wait off: Cancelled. */
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
  /** It may have happened: the reply was lost. Repeating it is safe, except for a countDown, a limiter's take, a notification,
   *  and the very last arriveAndDrop of a barrier. */
  readonly outcomeUnknown: boolean;
  /** The lease that it was about no longer protects anything. */
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
  /** Gives it up. A second time does nothing. */
  close(): void;
  [Symbol.dispose](): void;
}

/** The proof of holding; `await using` releases it at the end of the block. One that is garbage-collected is given back, so keep a
 *  reference to it. */
export interface Lease extends Handle {
  /** Greater than that of every earlier holder: pass it on to what the lock protects, which refuses smaller ones. */
  readonly fence: bigint;
  /** One for each member of a multiLock; else the one. */
  readonly fences: bigint[];
  readonly state: 'held' | 'suspect' | 'lost' | 'released';
  readonly lost: boolean;
  /** How long it is held for certain without another renewal. */
  readonly remaining: number;
  readonly name: string;
  readonly shortId: string;
  /** Aborted when the lease is lost, before another can get the lock; also with an error that keeps it from being watched. Renewal goes
   *  on while JavaScript is busy; the news waits, also for a thread of Node's pool. The commands of this JavaScript thread leave one
   *  free, but no other work of the pool does. The signal does not keep the lease: if nothing refers to the lease any more, it is garbage-collected and given back,
   *  and the signal is aborted first. */
  readonly signal: AbortSignal;
  /** Throws Lost unless it is held. */
  check(): void;
  /** Renews now, for so long, or for as long as it was taken for. */
  extend(length?: number): Promise<void>;
  /** Rejects with Lost if it had ended before, with NotOwner if it was released, or while a wait for a condition has it. */
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Something that is acquired. It belongs to no task: any code that has this object holds the lock. */
export interface Lock extends Handle {
  acquire(wait?: Wait): Promise<Lease>;
  /** null if it is not free in time: without a timeout at once. */
  tryAcquire(wait?: Wait): Promise<Lease | null>;
  /** Does the work while it is held, and releases. Rejects with Lost if the lock was lost before the work was over. */
  with<T>(work: (lease: Lease) => T | Promise<T>, wait?: Wait): Promise<T>;
}

export interface SharedMutex extends Lock {
  /** The reading side. */
  shared(): Lock;
  downgrade(lease: Lease): Promise<void>;
  /** Whether it was the only reader, and is the writer now. */
  tryUpgrade(lease: Lease): Promise<boolean>;
}

export interface Semaphore extends Lock {
  /** So many at once, or none. */
  permits(count: number): Lock;
  available(): Promise<number>;
}

export interface Leader {
  term: bigint;
  note: string;
  host: string;
  pid: number;
  program: string;
  /** Others may have led since the one that was given before. */
  afterGap: boolean;
}

export interface Leaders extends Handle {
  /** The next leader after the one that was given last. One call at a time. Asks twice a second. */
  next(wait?: Wait): Promise<Leader>;
}

/** To acquire it is to lead; the fence is the term. */
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

/** That one has arrived in a phase of a barrier. It counts also if it is closed or collected. */
export interface Arrival extends Handle {}

export interface Barrier extends Handle {
  /** Does not wait for the others, but for the end of a phase in which an arrival of this thread stands that nobody has. After TimedOut
   *  and Cancelled the arrival may count all the same: arrive again. */
  arrive(wait?: Wait): Promise<Arrival>;
  /** Until all have arrived; closes the arrival. Rejects with Lost, once, if a participant died. After TimedOut and Cancelled the arrival
   *  stands, and can be waited for again. */
  wait(arrival: Arrival, wait?: Wait): Promise<void>;
  /** Rejects with Lost, once, if a participant died. After TimedOut and Cancelled the arrival stands. Calls of a JavaScript thread on
   *  one Barrier, one after the other, are of one participant: an arrival after one that stands first waits for the end of that phase. Two
   *  calls at once are of two. */
  arriveAndWait(wait?: Wait): Promise<void>;
  /** Arrives, and will not come again. Waits for no others, but for the end of a phase in which an arrival of this thread stands. After
   *  TimedOut and Cancelled it may not have dropped out: call it again. */
  arriveAndDrop(wait?: Wait): Promise<void>;
}

export interface Condition extends Handle {
  /** Whether it was notified in time. The mutex is held again by the same lease, with a new fence: look, and wait again. After any
   *  error but NotOwner, InvalidArgument and Unsupported it is not held: the lease is released, and its signal aborted. Cancelled also
   *  if the lease was closed meanwhile. */
  wait(lease: Lease, wait?: Wait): Promise<boolean>;
  notifyOne(): Promise<number>;
  notifyAll(): Promise<number>;
}

export interface Rule {
  tokens: number;
  /** They come back in so many milliseconds; 1000 if not given. */
  per?: number;
  burst?: number;
  by?: string[];
  interval?: boolean;
  name?: string;
}

export interface Decision {
  taken: boolean;
  /** Refused: until it might be taken. Reserved: until it counts. */
  wait: number;
  limit: number;
  remaining: number;
  reset: number;
  rule: string;
  /** So many were taken, and each rule has them then, in microseconds of the store's clock. */
  tokens: number;
  due: (number | bigint)[];
}

export interface Limiter extends Handle {
  tryTake(n?: number, key?: Record<string, string>): Promise<Decision>;
  /** Waits until they are there; false if that would last longer. */
  take(n?: number, key?: Record<string, string>, wait?: Wait): Promise<boolean>;
  reserve(n: number, longestWait: number, key?: Record<string, string>): Promise<Decision>;
  peek(n?: number, key?: Record<string, string>): Promise<Decision>;
  /** All that a decision took and nobody used, so that no more goes through than the rules allow; or so many tokens, which count as
   *  taken now. */
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

/** A connection to a store. Locks and leases made on it outlive it. */
export interface Session extends Handle {
  /** Without passwords. */
  readonly url: string;
  mutex(name: string, options?: LockOptions): Lock;
  /** The same names, strictly in order of arrival. */
  fairMutex(name: string, options?: LockOptions): Lock;
  sharedMutex(name: string, options?: LockOptions & {preference?: 'fifo' | 'readers' | 'writers'}): SharedMutex;
  semaphore(name: string, capacity: number, options?: LockOptions): Semaphore;
  election(name: string, options?: {note?: string; priority?: number; lease?: number}): Election;
  latch(name: string, count: number, options?: {keep?: number}): Latch;
  barrier(name: string, count: number, options?: {lease?: number}): Barrier;
  condition(name: string): Condition;
  limiter(name: string, rules: Rule[], options?: {localTokens?: number}): Limiter;
  show(name: string): Promise<NameInfo>;
  /** Takes the lock away from its holders, or from the one with this short id; an empty one is InvalidArgument. How many holders were
   *  removed. */
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
/** A majority of independent stores. A trustAfter of 0 is "off". */
export function redlock(nodes: Session[], name: string,
                        options?: {lease?: number; nodeTimeout?: number; trustAfter?: number; reason?: string}): Lock;
export const version: string;
