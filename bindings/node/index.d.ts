// holdfast for Node. Durations and timeouts are milliseconds, fences are bigints. Functions that return a promise do not block the event
// loop; close(), `using` and the garbage collector block it for one round trip if they end a lease, a session, a barrier that has
// participants, or a lock that lingers. A call costs as many round trips as the same call in C++ (docs/). A wait rejects with Busy (one
// try), TimedOut or Cancelled, and with Unavailable if the store is away.

/** A whole number. */
export type Whole = number | bigint;

/** How a call waits. Here and in all other options, null counts as not given. */
export interface Wait {
  /** 0 or negative: one try. Not given: without a limit. */
  timeout?: number | null;
  /** Aborting it ends the wait with Cancelled. */
  signal?: AbortSignal | null;
}

export class HoldfastError extends Error {
  /** The number of the code, as in holdfast/c/error.h. */
  readonly code: number;
  /** What was tried: "acquire", "open". Here and in the next two, an empty text means that it does not apply. */
  readonly operation: string;
  /** The name of the lock or other primitive. */
  readonly lockName: string;
  /** The URL of the store, never with a password. */
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
  /** A number greater than the fence of every earlier holder; 0n where the store has none (docs/guarantees.md). Pass it to the resource,
   *  which refuses smaller ones. */
  readonly fence: bigint;
  /** The fence of each member of a multiLock; of another lock its one fence. */
  readonly fences: bigint[];
  /** By the clock at this moment. 'suspect': a renewal failed or hangs, and the lock is still held. */
  readonly state: 'held' | 'suspect' | 'lost' | 'released';
  /** Whether the lock was lost. */
  readonly lost: boolean;
  /** How long the lock is certain to be held without another renewal. */
  readonly remaining: number;
  /** As the store knows it; empty for a multiLock and a redlock. */
  readonly name: string;
  /** Names this acquisition in logs, and for forceRelease(). */
  readonly shortId: string;
  /** Aborted when the lease is lost, before another holder can get the lock (docs/guarantees.md has the exceptions). If an error keeps the
   *  package from watching the lease, the signal is aborted with that error. While a wait for a condition has the lease, that error is
   *  NotOwner: read the property again after the wait. Renewal continues while JavaScript is busy. The report of a loss needs the event
   *  loop and a thread of Node's pool. The commands of this JavaScript thread leave one thread of the pool free; other work of the pool
   *  does not. The signal does not keep the lease alive: if nothing else refers to the lease, the signal is aborted and the lease is
   *  released. */
  readonly signal: AbortSignal;
  /** Throws Lost unless the lock is held. */
  check(): void;
  /** Renews the lease now, for `length` from now on, or for its old length. */
  extend(length?: number | null): Promise<void>;
  /** Rejects with Lost if the lease had ended before; with NotOwner if it was released already, or while a wait for a condition uses
   *  it. */
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A lock. It belongs to no task: whichever code has its lease holds it. */
export interface Lock extends Handle {
  /** Waits for the lock, and resolves to its lease. */
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
  /** A writer's lease becomes a reader's, with no other writer in between. */
  downgrade(lease: Lease): Promise<void>;
  /** If there is no other reader, the lease becomes a writer's, with a new fence; otherwise it stays a reader's, and the promise
   *  resolves to false at once. */
  tryUpgrade(lease: Lease): Promise<boolean>;
}

export interface Semaphore extends Lock {
  /** The lock that takes `count` permits together, or none. */
  permits(count: Whole): Lock;
  /** Resolves to how many permits are free at this moment. */
  available(): Promise<number>;
}

/** A leader, as every program can read it. Unknown fields are 0 or empty. */
export interface Leader {
  /** Greater than the term of every earlier leader. */
  term: bigint;
  note: string;
  host: string;
  pid: number;
  program: string;
  /** Other leaders may have been missed since the previous one. */
  afterGap: boolean;
}

export interface Leaders extends Handle {
  /** Waits for the leader after the one that was returned last. One call at a time. Polls about twice a second. */
  next(wait?: Wait): Promise<Leader>;
}

/** One of many candidates leads: the one that has acquired this lock. The fence of its lease is the term. */
export interface Election extends Lock {
  /** Resolves to the present leader, or to null. */
  leader(): Promise<Leader | null>;
  /** Reports the leaders one after the other. */
  observe(): Leaders;
}

/** Waiters continue when the count has reached zero. */
export interface Latch extends Handle {
  /** Counts down by n (1). Rejects with InvalidArgument for 0, and for more than remains. */
  countDown(n?: Whole): Promise<void>;
  /** Waits until the count has reached zero. */
  wait(wait?: Wait): Promise<void>;
  /** Resolves to the present count. */
  remaining(): Promise<number>;
  /** Removes the latch, and frees its name. */
  remove(): Promise<void>;
}

/** One arrival in a phase of a barrier. It still counts if this object is closed or collected. */
export interface Arrival extends Handle {}

/** `count` participants wait for each other, in one phase after the other. Make one Barrier for each participant: calls that follow
 *  each other on one Barrier belong to one participant. After close() its waits reject with Cancelled. */
export interface Barrier extends Handle {
  /** Does not wait for the others. One exception: if an earlier arrival of this thread still counts, and the program has no Arrival for
   *  it, this call first waits for the end of that phase. After TimedOut and Cancelled the arrival may still count: call it again. */
  arrive(wait?: Wait): Promise<Arrival>;
  /** Waits until all have arrived, and closes the arrival. Rejects with Lost, once, if a participant died. After TimedOut and
   *  Cancelled the arrival still counts, and can be waited for again. */
  wait(arrival: Arrival, wait?: Wait): Promise<void>;
  /** Arrives, and waits until all have arrived. Rejects with Lost, once, if a participant died. After TimedOut and Cancelled the
   *  arrival counts if the store had answered; otherwise it may count. The next arrival first waits for the end of a phase in which it
   *  counts. Two calls at the same time belong to two participants. */
  arriveAndWait(wait?: Wait): Promise<void>;
  /** Arrives, and drops out. Does not wait for the others, unless an arrival of this thread still counts: then it first waits for the
   *  end of that phase. After TimedOut and Cancelled the participant may not have dropped out: call it again. */
  arriveAndDrop(wait?: Wait): Promise<void>;
}

/** Releases a mutex, waits until any process notifies, and acquires the mutex again. */
export interface Condition extends Handle {
  /** Resolves to whether a notification came in time. The mutex is then held again by the same lease, with a new fence: check the
   *  condition, and wait again if it is false. After an error other than NotOwner, InvalidArgument and Unsupported the mutex is not held:
   *  the lease is released, and its signal aborted. It also rejects with Cancelled if the lease was closed meanwhile. */
  wait(lease: Lease, wait?: Wait): Promise<boolean>;
  /** Wakes the first waiter. Resolves to how many waiters were woken. */
  notifyOne(): Promise<number>;
  /** Wakes all waiters. Resolves to how many were woken. */
  notifyAll(): Promise<number>;
}

/** One token bucket, or one for each value of some parts of the key. */
export interface Rule {
  tokens: Whole;
  /** The time in which `tokens` come back, in milliseconds; 1000 if not given. */
  per?: number | null;
  /** The most tokens that a bucket holds. 0 or not given: as many as `tokens`. */
  burst?: Whole | null;
  /** Parts of the key: each combination of their values has a bucket of its own. Not given: one bucket for all. */
  by?: readonly string[] | null;
  /** All tokens come back at once, each time `per` has passed. */
  interval?: boolean | null;
  /** Identifies the rule. Not given: its number. */
  name?: string | null;
}

/** The decision of a limiter. A refusal is not an error. */
export interface Decision {
  /** Whether the tokens were taken, or reserved. */
  taken: boolean;
  /** After a refusal: how long until the tokens might be there. After reserve(): how long until they are there. After takeDecision():
   *  how long it waited. */
  wait: number;
  /** Of the rule that is closest to refusing: how many tokens its full bucket holds, how many it has, and how long until it is full. */
  limit: number;
  remaining: number;
  reset: number;
  /** The name of that rule. Empty: the wait ended before the store had answered. */
  rule: string;
  /** How many tokens were taken. `due` says when the bucket of each rule has them, in microseconds of the store's clock. */
  tokens: number;
  due: (number | bigint)[];
}

/** Limits how often something may happen, with token buckets by name. */
export interface Limiter extends Handle {
  /** Takes n tokens (1) from the bucket of every rule, or nothing. Does not wait. */
  tryTake(n?: Whole, key?: Record<string, string>): Promise<Decision>;
  /** Waits until n tokens (1) are there, and takes them. Resolves to false, and takes nothing, if they would not be there in time. */
  take(n?: Whole, key?: Record<string, string>, wait?: Wait): Promise<boolean>;
  /** As take(), but resolves to the whole decision, which refund() accepts. Test its `taken`, because the object itself is always
   *  true. */
  takeDecision(n?: Whole, key?: Record<string, string>, wait?: Wait): Promise<Decision>;
  /** Reserves n tokens that will be there within `longestWait`, or nothing. Does not wait. */
  reserve(n: Whole, longestWait: number, key?: Record<string, string>): Promise<Decision>;
  /** Resolves to what the store would answer now, and takes nothing. Local tokens do not count. */
  peek(n?: Whole, key?: Record<string, string>): Promise<Decision>;
  /** Gives back the unused tokens of a decision, under the same key. Requests that took tokens later keep their times, so some of the
   *  tokens may be lost (docs/rate_limiter.md). A number gives back that many tokens, as if they had been taken now. */
  refund(what?: Whole | Decision, key?: Record<string, string>): Promise<void>;
}

export interface LockOptions {
  /** How long the lock outlives a crash. Not given: as the session says. */
  lease?: number | null;
  /** false: the lock ends by itself when the lease is over. */
  renew?: boolean | null;
  /** The longest time for which one hold lasts. Not given: no limit. */
  maxHold?: number | null;
  /** How long callers of this process may pass a mutex on without asking the store. Not given: 10 ms. 0: never. */
  localTime?: number | null;
  /** How long an idle mutex may stay with this process. Not given: not at all. */
  linger?: number | null;
  /** How many calls may wait behind another one; the next one rejects with Overloaded. 0 or not given: no limit. */
  maxWaiters?: Whole | null;
  /** close() of a lease does not wait for the answer of the store. */
  unconfirmedRelease?: boolean | null;
  /** For people: shown by `holdfast list`. */
  reason?: string | null;
}

/** What the store knows about one name at this moment. */
export interface NameInfo {
  /** "mutex", "shared_mutex", "semaphore" and so on. Empty: the name is not in use. */
  kind: string;
  /** All permits; of a latch the count at its start. */
  capacity: number;
  /** Free permits; of a latch the count now. */
  remaining: number;
  /** How many holders there are. */
  holders: number;
  /** How many requests are queued. */
  waiters: number;
  /** The fence of the latest grant; 0n if the store does not remember one. */
  lastFence: bigint;
  /** The short id of the first holder. Empty if nobody holds it, and perhaps if another program does. */
  holder: string;
}

/** A connection to a store. Locks and leases that were made with it outlive this object. */
export interface Session extends Handle {
  /** Without passwords. */
  readonly url: string;
  /** Mutual exclusion by name, between all programs that open the same store. */
  mutex(name: string, options?: LockOptions): Lock;
  /** As mutex(), on the same names, but strictly in order of arrival across processes. */
  fairMutex(name: string, options?: LockOptions): Lock;
  /** Many readers or one writer. `preference`: "fifo" (order of arrival, the default), "readers" or "writers" (they pass the others). */
  sharedMutex(name: string, options?: LockOptions & {preference?: 'fifo' | 'readers' | 'writers' | null}): SharedMutex;
  /** All programs state the same capacity; otherwise acquiring rejects with CapacityMismatch. */
  semaphore(name: string, capacity: Whole, options?: LockOptions): Semaphore;
  /** Every program can read the note. The waiting candidate with the greatest `priority` (any 32-bit integer) leads next. */
  election(name: string, options?: {note?: string | null; priority?: Whole | null; lease?: number | null}): Election;
  /** The store forgets the latch `keep` after its last use; not given: a day. */
  latch(name: string, count: Whole, options?: {keep?: number | null}): Latch;
  /** `lease`: how long the others wait for a participant whose death the store cannot see. Not given: as the session says. */
  barrier(name: string, count: Whole, options?: {lease?: number | null}): Barrier;
  /** Its name must differ from that of its mutex. */
  condition(name: string): Condition;
  /** 1 to 16 rules. All programs state the same rules; otherwise taking tokens rejects with CapacityMismatch. `localTokens`: from 2
   *  on, the process takes this many tokens at once, and gives them out without a round trip. 0 or not given: off. */
  limiter(name: string, rules: readonly Rule[], options?: {localTokens?: Whole | null}): Limiter;
  /** Resolves to what the store knows about a name. */
  show(name: string): Promise<NameInfo>;
  /** Takes the lock away from its holders, or from the holder with this short id. An empty short id rejects with InvalidArgument.
   *  Resolves to how many holders were removed. A former holder learns of it at its next renewal; until then the fence protects the
   *  resource. */
  forceRelease(name: string, shortId?: string | null): Promise<number>;
}

export interface SessionOptions {
  /** How long a lock outlives a crash. Not given: 30 s. */
  lease?: number | null;
  /** How long open() and calls without a limit retry while the store is away. Not given: 10 s. */
  storeTimeout?: number | null;
  /** Put before every name. */
  namePrefix?: string | null;
}

/**
 * Opens the store that the URL names: memory:, sqlite:PATH, redis://…, and the others of docs/stores. Waits storeTimeout (10 s) for a
 * store that is away, and then rejects.
 */
export function open(url: string, options?: SessionOptions): Promise<Session>;
/** All of several locks, or none. */
export function multiLock(...members: Lock[]): Lock;
/** A lock that a majority of the nodes grants; each session is one node. `trustAfter`: a node has no vote for this long after its
 *  start; 0 or not given: off. */
export function redlock(nodes: readonly Session[], name: string,
                        options?: {lease?: number | null; nodeTimeout?: number | null; trustAfter?: number | null;
                                   reason?: string | null}): Lock;
/** The version of holdfast, as "0.1.0". */
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
