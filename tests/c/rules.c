/* Rules of the C interface, tested by a C99 program that includes only the public header.
 * - rules --list: prints the names of the rules.
 * - rules URL RULE NODE NODE: tests one rule on this store; exits with 0 if it holds. The nodes are
 *   the URLs of two more stores of this kind.
 * - rules URL --release: a release while another waits; prints the error's text if it fails.
 * - rules URL --hangs: calls of a server that the caller stops and resumes, when told to.
 * - rules URL --unconfirmed: the same for a lease that is closed without its answer.
 * - rules URL --closes-sessions: the same for sessions with such leases, in use by other threads.
 * - rules URL --closes-idle-locks: the same for locks that linger, in use by other threads.
 * - rules URL --ends-in-release, --ends-in-close, --ends-in-extend: the same while the end of the
 *   program waits.
 * - rules --layout: prints sizes and offsets of the structs, for the bindings' tests. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <holdfast/holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* url;
static const char* nodes_urls[3]; /* independent stores, for a redlock; the first is `url` */
static holdfast_session_options options = {.size = sizeof(holdfast_session_options)};
static holdfast_session *store, *other; /* for the store these are two programs */
static holdfast_error why = {.size = sizeof(holdfast_error)};

static const int64_t second = 1000000000;

#define CHECK(what)                                                                 \
  do {                                                                              \
    if (!(what)) {                                                                  \
      fprintf(stderr, "%s:%d: %s\n  %s\n", __FILE__, __LINE__, #what, why.message); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)
#define OK(call) CHECK((call) == HOLDFAST_OK)
#define GIVES(code, call) CHECK((call) == (code))

static holdfast_wait timed(int64_t ns) {
  holdfast_wait how = {.size = sizeof how, .timeout_ns = ns};
  return how;
}

static holdfast_wait told_to(holdfast_queue* queue, uint64_t tag) {
  holdfast_wait how = {
      .size = sizeof how, .timeout_ns = HOLDFAST_NO_LIMIT, .queue = queue, .tag = tag};
  return how;
}

static holdfast_lock* mutex_of(holdfast_session* of, const char* name) {
  holdfast_lock* lock = NULL;
  OK(holdfast_mutex(of, name, NULL, &lock, &why));
  return lock;
}

static holdfast_lease* taken(holdfast_lock* lock) {
  const holdfast_wait soon = timed(30 * second);
  holdfast_lease* lease = NULL;
  OK(holdfast_acquire(lock, &soon, &lease, &why));
  return lease;
}

static int tried(holdfast_lock* lock) {
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  holdfast_lease* lease = NULL;
  const int code = holdfast_acquire(lock, &once, &lease, &why);
  if (code == HOLDFAST_OK) OK(holdfast_release(lease, NULL, &why));
  return code;
}

static holdfast_lease_info info_of(holdfast_lease* lease) {
  holdfast_lease_info info = {.size = sizeof info};
  OK(holdfast_lease_info_of(lease, &info, &why));
  return info;
}

static holdfast_event next_of(holdfast_queue* queue) {
  holdfast_event event = {.size = sizeof event};
  OK(holdfast_queue_next(queue, 30 * second, &event, &why));
  return event;
}

static int readable(int fd) {
  struct pollfd at = {.fd = fd, .events = POLLIN};
  return poll(&at, 1, 0) == 1;
}

/* Whether a descriptor is a duplicate of another: they have the flags of the open file in common.
 * Its number alone says nothing, because another thread may use the number again. */
static int duplicates(int fd, int other_fd) {
  int follows = 1;
  for (int turn = 0; turn < 4; ++turn) {
    const int flag = turn % 2 == 0 ? 0 : O_NONBLOCK;
    CHECK(fcntl(other_fd, F_SETFL, flag) == 0);
    const int flags = fcntl(fd, F_GETFL);
    follows = follows && flags != -1 && (flags & O_NONBLOCK) == flag;
  }
  return follows;
}

static uint32_t waiters(const char* name) {
  holdfast_name_info info = {.size = sizeof info};
  OK(holdfast_show(store, name, &info, &why));
  return info.waiters;
}

/* ---- leases ---------------------------------------------------------------------------------- */

static void options_of_sessions_and_locks_take_effect(void) {
  holdfast_session_options brief = options;
  brief.lease_ms = 5000;
  holdfast_session* mine = NULL;
  OK(holdfast_open(url, &brief, &mine, &why));
  holdfast_lease* lease = taken(mutex_of(mine, "m"));
  CHECK(info_of(lease).remaining_ns <= 5 * second);
  OK(holdfast_release(lease, NULL, &why));
  const holdfast_lock_options held_briefly = {
      .size = sizeof held_briefly, .lease_ms = 300, .max_hold_ms = 400};
  holdfast_lock* lock = NULL;
  OK(holdfast_mutex(mine, "m", &held_briefly, &lock, &why));
  lease = taken(lock);
  taken(mutex_of(store, "m")); /* the first hold has reached max_hold_ms */
  GIVES(HOLDFAST_LOST, holdfast_release(lease, NULL, &why));
  brief.size = sizeof brief - 1;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_open(url, &brief, &mine, &why));
}

static void a_mutex_excludes_others_and_its_fence_increases(void) {
  holdfast_lock *mine = mutex_of(store, "m"), *theirs = mutex_of(other, "m");
  holdfast_lease* lease = taken(mine);
  const holdfast_lease_info first = info_of(lease);
  CHECK(first.state == HOLDFAST_HELD && first.fence > 0 && first.remaining_ns > 0);
  CHECK(strstr(first.name, "m") != NULL && strlen(first.short_id) == 8);
  GIVES(HOLDFAST_BUSY, tried(theirs));
  OK(holdfast_release(lease, NULL, &why));
  lease = taken(theirs);
  CHECK(info_of(lease).fence > first.fence);
  OK(holdfast_release(lease, NULL, &why));
}

static void a_fair_mutex_shares_names_with_a_mutex(void) {
  holdfast_lock* fair = NULL;
  OK(holdfast_fair_mutex(store, "m", NULL, &fair, &why));
  holdfast_lease* lease = taken(fair);
  GIVES(HOLDFAST_BUSY, tried(mutex_of(other, "m")));
  OK(holdfast_release(lease, NULL, &why));
}

static void a_wait_with_a_timeout_times_out(void) {
  holdfast_lease *lease = taken(mutex_of(store, "m")), *none = NULL;
  const holdfast_wait short_wait = timed(second / 20);
  GIVES(HOLDFAST_TIMED_OUT, holdfast_acquire(mutex_of(other, "m"), &short_wait, &none, &why));
  CHECK(none == NULL && why.code == HOLDFAST_TIMED_OUT && why.message[0] != 0);
  OK(holdfast_lease_check(lease, &why));
}

struct waiter {
  holdfast_lock* lock;
  holdfast_wait how;
  int code;
  holdfast_lease* lease;
  int ended;
};
static void* waits(void* of) {
  struct waiter* w = of;
  w->code = holdfast_acquire(w->lock, &w->how, &w->lease, NULL);
  __atomic_store_n(&w->ended, 1, __ATOMIC_RELEASE);
  return NULL;
}
static void await_waiters(const char* name, uint32_t count) {
  while (waiters(name) < count) (void)sched_yield();
}
/* Waits until the waiter is queued; its end before that is a failure. */
static void await_waiter(const char* name, const struct waiter* w) {
  while (waiters(name) == 0) {
    CHECK(!__atomic_load_n(&w->ended, __ATOMIC_ACQUIRE));
    (void)sched_yield();
  }
}

static void a_wait_ends_when_its_stop_is_requested(void) {
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  struct waiter w = {.lock = mutex_of(other, "m"), .how = timed(HOLDFAST_NO_LIMIT)};
  OK(holdfast_stop_open(&w.how.stop, &why));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, waits, &w) == 0);
  await_waiter("m", &w);
  OK(holdfast_stop_request(w.how.stop, &why));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(w.code == HOLDFAST_CANCELLED && w.lease == NULL);
  GIVES(HOLDFAST_CANCELLED, holdfast_acquire(w.lock, &w.how, &w.lease, &why));
  OK(holdfast_release(lease, NULL, &why));
}

static void closing_a_lock_does_not_end_a_wait_of_another_thread(void) {
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  struct waiter w = {.lock = mutex_of(other, "m"), .how = timed(60 * second)};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, waits, &w) == 0);
  await_waiter("m", &w);
  OK(holdfast_close(w.lock, &why));
  OK(holdfast_close(other, &why));
  OK(holdfast_release(lease, NULL, &why));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(w.code == HOLDFAST_OK);
  OK(holdfast_release(w.lease, NULL, &why));
}

static void a_second_release_returns_an_error_and_changes_nothing(void) {
  holdfast_lock* mine = mutex_of(store, "m");
  holdfast_lease* lease = taken(mine);
  OK(holdfast_release(lease, NULL, &why));
  holdfast_lease* next = taken(mutex_of(other, "m"));
  GIVES(HOLDFAST_NOT_OWNER, holdfast_release(lease, NULL, &why));
  GIVES(HOLDFAST_NOT_OWNER, holdfast_lease_check(lease, &why));
  GIVES(HOLDFAST_NOT_OWNER, holdfast_lease_extend(lease, 0, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_close(lease, &why));
  OK(holdfast_lease_check(next, &why));
  GIVES(HOLDFAST_BUSY, tried(mine));
}

static void* releases(void* lease) {
  return holdfast_release(lease, NULL, NULL) == HOLDFAST_OK ? lease : NULL;
}
static void exactly_one_of_two_concurrent_releases_succeeds(void) {
  holdfast_lock* mine = mutex_of(store, "m");
  for (int i = 0; i < 50; ++i) {
    holdfast_lease* lease = taken(mine);
    pthread_t threads[2];
    int done = 0;
    for (int t = 0; t < 2; ++t) CHECK(pthread_create(&threads[t], NULL, releases, lease) == 0);
    for (int t = 0; t < 2; ++t) {
      void* said = NULL;
      CHECK(pthread_join(threads[t], &said) == 0);
      done += said != NULL;
    }
    CHECK(done == 1);
  }
  GIVES(HOLDFAST_OK, tried(mutex_of(other, "m")));
}

static void a_closed_lease_is_released(void) {
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  OK(holdfast_close(lease, &why));
  GIVES(HOLDFAST_OK, tried(mutex_of(other, "m")));
  GIVES(HOLDFAST_NOT_OWNER, holdfast_release(lease, NULL, &why));
}

static void close_all_releases_every_lease(void) {
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  (void)taken(mutex_of(store, "n"));
  holdfast_close_all();
  GIVES(HOLDFAST_NOT_OWNER, holdfast_release(lease, NULL, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_close(store, &why));
  OK(holdfast_open(url, &options, &store, &why));
  GIVES(HOLDFAST_OK, tried(mutex_of(store, "m")));
  GIVES(HOLDFAST_OK, tried(mutex_of(store, "n")));
}

static void close_all_ends_the_waits_of_other_threads_which_are_granted_nothing(void) {
  for (int own_stop = 0; own_stop < 2; ++own_stop) {
    (void)taken(mutex_of(store, "m"));
    struct waiter w = {.lock = mutex_of(other, "m"), .how = timed(HOLDFAST_NO_LIMIT)};
    if (own_stop) OK(holdfast_stop_open(&w.how.stop, &why));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, waits, &w) == 0);
    await_waiter("m", &w);
    holdfast_close_all();
    OK(holdfast_open(url, &options, &store, &why));
    OK(holdfast_open(url, &options, &other, &why));
    holdfast_name_info info = {.size = sizeof info};
    OK(holdfast_show(store, "m", &info, &why));
    CHECK(info.holders == 0 && info.waiters == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(w.code == HOLDFAST_CANCELLED && w.lease == NULL);
  }
}

/* Its next call begins while close_all still waits for the others. */
static void* tries_until_its_lock_is_closed(void* of) {
  struct waiter* w = of;
  do {
    w->code = holdfast_acquire(w->lock, &w->how, &w->lease, NULL);
  } while (w->code == HOLDFAST_TIMED_OUT || w->code == HOLDFAST_CANCELLED);
  return NULL;
}

static void close_all_leaves_nothing_to_a_thread_that_asks_again(void) {
  (void)taken(mutex_of(store, "m"));
  struct waiter w = {.lock = mutex_of(other, "m"), .how = timed(HOLDFAST_NO_LIMIT)};
  struct waiter again = {.lock = mutex_of(other, "m"), .how = timed(second / 1000)};
  pthread_t threads[2];
  CHECK(pthread_create(&threads[0], NULL, waits, &w) == 0);
  CHECK(pthread_create(&threads[1], NULL, tries_until_its_lock_is_closed, &again) == 0);
  await_waiter("m", &w);
  holdfast_close_all();
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(again.code == HOLDFAST_INVALID_ARGUMENT && again.lease == NULL);
  OK(holdfast_open(url, &options, &store, &why));
  OK(holdfast_open(url, &options, &other, &why));
  holdfast_name_info info = {.size = sizeof info};
  OK(holdfast_show(store, "m", &info, &why));
  CHECK(info.holders == 0 && info.waiters == 0);
}

enum { many = 100 };
static const char* name_number(int i, char name[16]) {
  (void)snprintf(name, 16, "m%d", i);
  return name;
}
static holdfast_lock* mutex_number(holdfast_session* of, int i) {
  char name[16];
  return mutex_of(of, name_number(i, name));
}

enum calls { releases_them, waits_here, waits_in_another_session };
/* Ends with as many calls under way. Writes the fences of its locks. */
static void end_during_calls(enum calls which, int fences) {
  (void)alarm(40); /* the parent's alarm is not the child's */
  OK(holdfast_open(url, &options, &store, &why));
  OK(holdfast_open(url, &options, &other, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 1);
  holdfast_lease* leases[many];
  for (int i = 0; i < many; ++i) {
    leases[i] = taken(mutex_number(store, i));
    const uint64_t fence = info_of(leases[i]).fence;
    CHECK(write(fences, &fence, sizeof fence) == sizeof fence);
  }
  for (int i = 0; i < many; ++i) {
    holdfast_lock* const lock = mutex_number(which == waits_here ? store : other, i);
    if (which == releases_them) OK(holdfast_release(leases[i], &told, &why));
    if (which != releases_them) OK(holdfast_acquire(lock, &told, NULL, &why));
  }
  if (which == waits_in_another_session) {
    for (int i = 0; i < many; ++i) {
      char name[16];
      await_waiters(name_number(i, name), 1);
    }
  }
  holdfast_close_all();
  _exit(0);
}

/* In a process that ends at once: in a process that lives on, these calls soon end by themselves.
 * No wait is granted a lock that the end releases. */
static void close_all_ends_calls_with_a_queue_which_leave_nothing_behind(void) {
  for (enum calls which = releases_them; which <= waits_in_another_session; ++which) {
    int fences[2];
    CHECK(pipe(fences) == 0);
    const pid_t pid = fork();
    if (pid == 0) end_during_calls(which, fences[1]);
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    for (int i = 0; i < many; ++i) {
      char name[16];
      holdfast_name_info info = {.size = sizeof info};
      uint64_t fence = 0;
      CHECK(read(fences[0], &fence, sizeof fence) == sizeof fence);
      OK(holdfast_show(store, name_number(i, name), &info, &why));
      CHECK(info.holders == 0 && info.waiters == 0);
      CHECK(info.last_fence <= fence); /* only Redis keeps it: elsewhere it is 0 */
    }
    CHECK(close(fences[0]) == 0 && close(fences[1]) == 0);
  }
}

static void a_lock_outlives_the_handle_of_its_session(void) {
  holdfast_lock* mine = mutex_of(store, "m");
  OK(holdfast_close(store, &why));
  holdfast_lease* lease = taken(mine);
  OK(holdfast_close(mine, &why));
  OK(holdfast_lease_check(lease, &why));
  GIVES(HOLDFAST_BUSY, tried(mutex_of(other, "m")));
  OK(holdfast_release(lease, NULL, &why));
}

static void an_extended_lease_has_the_new_length(void) {
  const holdfast_lock_options short_one = {
      .size = sizeof short_one, .no_renewal = 1, .lease_ms = 20000, .reason = "tests"};
  holdfast_lock* mine = NULL;
  OK(holdfast_mutex(store, "m", &short_one, &mine, &why));
  holdfast_lease* lease = taken(mine);
  CHECK(info_of(lease).remaining_ns <= 20 * second);
  OK(holdfast_lease_extend(lease, 3600 * 1000, &why));
  CHECK(info_of(lease).remaining_ns > 1000 * second);
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_lease_extend(lease, 1, &why));
  OK(holdfast_release(lease, NULL, &why));
}

static void lose(const char* name) {
  uint64_t removed = 0;
  OK(holdfast_force_release(other, name, NULL, &removed, &why));
  CHECK(removed == 1);
}

static void force_release_with_an_empty_short_id_releases_nothing(void) {
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  uint64_t removed = 0;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_force_release(other, "m", "", &removed, &why));
  CHECK(removed == 0);
  GIVES(HOLDFAST_BUSY, tried(mutex_of(other, "m")));
  OK(holdfast_force_release(other, "m", info_of(lease).short_id, &removed, &why));
  CHECK(removed == 1);
  OK(holdfast_close(lease, &why));
}

static void the_loss_of_a_lease_is_an_event_and_check_reports_it(void) {
  const holdfast_lock_options quick = {.size = sizeof quick, .lease_ms = 2000};
  holdfast_lock* mine = NULL;
  OK(holdfast_mutex(store, "m", &quick, &mine, &why));
  holdfast_queue* queue = NULL;
  int fd = -1;
  OK(holdfast_queue_open(&queue, &fd, &why));
  holdfast_lease* lease = taken(mine);
  OK(holdfast_lease_watch(lease, queue, 7, &why));
  CHECK(!readable(fd));
  lose("m");
  const holdfast_event event = next_of(queue);
  CHECK(event.kind == HOLDFAST_LEASE_LOST && event.tag == 7 && event.lease == lease);
  CHECK(event.code == HOLDFAST_LOST && why.lease_gone == 1);
  GIVES(HOLDFAST_LOST, holdfast_lease_check(lease, &why));
  CHECK(info_of(lease).state == HOLDFAST_GONE && info_of(lease).remaining_ns == 0);
  OK(holdfast_lease_watch(lease, queue, 8, &why));
  CHECK(next_of(queue).tag == 8);
  GIVES(HOLDFAST_LOST, holdfast_release(lease, NULL, &why));
  CHECK(why.lease_gone == 1);
}

static void a_release_makes_no_loss_event(void) {
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  OK(holdfast_lease_watch(lease, queue, 7, &why));
  OK(holdfast_release(lease, NULL, &why));
  holdfast_event event = {.size = sizeof event};
  GIVES(HOLDFAST_TIMED_OUT, holdfast_queue_next(queue, HOLDFAST_ONE_TRY, &event, &why));
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void a_call_with_a_queue_returns_at_once_and_its_outcome_is_an_event(void) {
  holdfast_queue* queue = NULL;
  int fd = -1;
  OK(holdfast_queue_open(&queue, &fd, &why));
  holdfast_lease* held = taken(mutex_of(other, "m"));
  holdfast_lock* mine = mutex_of(store, "m");
  const holdfast_wait how = told_to(queue, 11);
  OK(holdfast_acquire(mine, &how, NULL, &why));
  CHECK(!readable(fd));
  OK(holdfast_release(held, NULL, &why));
  struct pollfd at = {.fd = fd, .events = POLLIN};
  CHECK(poll(&at, 1, 60000) == 1);
  holdfast_event event = next_of(queue);
  CHECK(event.kind == HOLDFAST_DONE && event.tag == 11 && event.code == HOLDFAST_OK);
  CHECK(!readable(fd));
  CHECK(info_of(event.lease).fence > 0);
  holdfast_wait quick = told_to(queue, 12);
  quick.timeout_ns = HOLDFAST_ONE_TRY;
  OK(holdfast_acquire(mutex_of(other, "m"), &quick, NULL, &why));
  const holdfast_event refused = next_of(queue);
  CHECK(refused.tag == 12 && refused.code == HOLDFAST_BUSY && refused.lease == NULL);
  CHECK(why.code == HOLDFAST_BUSY);
  OK(holdfast_release(event.lease, &how, &why));
  event = next_of(queue);
  CHECK(event.tag == 11 && event.code == HOLDFAST_OK && event.lease == NULL);
  GIVES(HOLDFAST_OK, tried(mutex_of(other, "m")));
}

static void a_call_with_a_queue_can_be_cancelled(void) {
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_lease* held = taken(mutex_of(other, "m"));
  holdfast_wait how = told_to(queue, 1);
  OK(holdfast_stop_open(&how.stop, &why));
  OK(holdfast_acquire(mutex_of(store, "m"), &how, NULL, &why));
  OK(holdfast_stop_request(how.stop, &why));
  CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
  OK(holdfast_release(held, NULL, &why));
}

/* A queue with a pending call, which lasts until the program ends. */
static holdfast_queue* queue_in_use(int* fd) {
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, fd, &why));
  (void)taken(mutex_of(other, "n"));
  const holdfast_wait how = told_to(queue, 99);
  OK(holdfast_acquire(mutex_of(store, "n"), &how, NULL, &why));
  return queue;
}

static void a_lock_granted_to_a_closed_queue_is_released(void) {
  holdfast_queue* queue = queue_in_use(NULL);
  holdfast_lease* held = taken(mutex_of(other, "m"));
  const holdfast_wait how = told_to(queue, 1);
  OK(holdfast_acquire(mutex_of(store, "m"), &how, NULL, &why));
  await_waiters("m", 1);
  OK(holdfast_close(queue, &why));
  OK(holdfast_release(held, NULL, &why));
  /* The lock is granted to the closed queue, and the library releases it. */
  OK(holdfast_release(taken(mutex_of(other, "m")), NULL, &why));
  holdfast_event event = {.size = sizeof event};
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_queue_next(queue, 0, &event, &why));
}

static void closing_a_queue_releases_leases_of_its_unread_events(void) {
  int fd = -1;
  holdfast_queue* queue = queue_in_use(&fd);
  const holdfast_wait how = told_to(queue, 1);
  OK(holdfast_acquire(mutex_of(store, "m"), &how, NULL, &why));
  struct pollfd at = {.fd = fd, .events = POLLIN};
  CHECK(poll(&at, 1, 60000) == 1);
  GIVES(HOLDFAST_BUSY, tried(mutex_of(other, "m")));
  OK(holdfast_close(queue, &why));
  OK(holdfast_release(taken(mutex_of(other, "m")), NULL, &why));
}

static void closing_a_queue_closes_its_descriptor_while_calls_still_use_the_queue(void) {
  int fd = -1;
  holdfast_queue* queue = queue_in_use(&fd);
  OK(holdfast_lease_watch(taken(mutex_of(store, "m")), queue, 7, &why));
  const int kept = dup(fd);
  CHECK(kept >= 0 && duplicates(fd, kept));
  OK(holdfast_close(queue, &why));
  CHECK(!duplicates(fd, kept));
  close(kept);
}

/* ---- the other primitives -------------------------------------------------------------------- */

static void readers_share_and_a_writer_excludes(void) {
  holdfast_lock *mine = NULL, *theirs = NULL;
  OK(holdfast_shared_mutex(store, "rw", HOLDFAST_FIFO, NULL, &mine, &why));
  OK(holdfast_shared_mutex(other, "rw", HOLDFAST_FIFO, NULL, &theirs, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_shared_mutex(store, "rw", 9, NULL, &mine, &why));
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  holdfast_lease *a = NULL, *b = NULL;
  OK(holdfast_acquire_shared(mine, &once, &a, &why));
  OK(holdfast_acquire_shared(theirs, &once, &b, &why));
  GIVES(HOLDFAST_BUSY, tried(mine));
  GIVES(HOLDFAST_BUSY, holdfast_upgrade(mine, a, &why));
  OK(holdfast_release(b, NULL, &why));
  OK(holdfast_upgrade(mine, a, &why));
  GIVES(HOLDFAST_BUSY, holdfast_acquire_shared(theirs, &once, &b, &why));
  OK(holdfast_downgrade(mine, a, &why));
  OK(holdfast_acquire_shared(theirs, &once, &b, &why));
  OK(holdfast_release(a, NULL, &why));
  GIVES(HOLDFAST_NOT_OWNER, holdfast_downgrade(theirs, a, &why));
  GIVES(HOLDFAST_UNSUPPORTED, holdfast_acquire_shared(mutex_of(store, "m"), &once, &a, &why));
}

static void a_semaphore_grants_only_its_permits(void) {
  holdfast_lock *mine = NULL, *theirs = NULL, *unlike = NULL;
  OK(holdfast_semaphore(store, "s", 3, NULL, &mine, &why));
  OK(holdfast_semaphore(other, "s", 3, NULL, &theirs, &why));
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  holdfast_lease *two = NULL, *more = NULL;
  OK(holdfast_acquire_permits(mine, 2, &once, &two, &why));
  GIVES(HOLDFAST_BUSY, holdfast_acquire_permits(theirs, 2, &once, &more, &why));
  uint32_t left = 9;
  OK(holdfast_semaphore_available(theirs, &left, &why));
  CHECK(left == 1);
  OK(holdfast_acquire(theirs, &once, &more, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_acquire_permits(mine, 0, &once, &more, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_acquire_permits(mine, 4, &once, &more, &why));
  OK(holdfast_semaphore(other, "s", 4, NULL, &unlike, &why));
  GIVES(HOLDFAST_CAPACITY_MISMATCH, tried(unlike));
}

static void a_latch_opens_at_zero(void) {
  holdfast_latch *mine = NULL, *theirs = NULL;
  OK(holdfast_latch_open(store, "l", 2, 0, &mine, &why));
  OK(holdfast_latch_open(other, "l", 2, 0, &theirs, &why));
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  GIVES(HOLDFAST_BUSY, holdfast_latch_wait(mine, &once, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait later = told_to(queue, 5);
  OK(holdfast_latch_wait(mine, &later, &why));
  OK(holdfast_latch_count_down(theirs, 1, NULL, &why));
  uint32_t left = 9;
  OK(holdfast_latch_remaining(mine, &left, &why));
  CHECK(left == 1);
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_latch_count_down(mine, 2, NULL, &why));
  OK(holdfast_latch_count_down(theirs, 1, NULL, &why));
  const holdfast_event event = next_of(queue);
  CHECK(event.tag == 5 && event.code == HOLDFAST_OK);
  OK(holdfast_latch_wait(mine, NULL, &why));
  OK(holdfast_latch_remove(mine, &why));
  OK(holdfast_latch_remaining(theirs, &left, &why));
  CHECK(left == 2);
}

static void a_barrier_opens_when_all_participants_have_arrived(void) {
  holdfast_barrier *mine = NULL, *theirs = NULL;
  OK(holdfast_barrier_open(store, "b", 2, 0, &mine, &why));
  OK(holdfast_barrier_open(other, "b", 2, 0, &theirs, &why));
  const holdfast_wait soon = timed(second / 20), later = timed(60 * second);
  for (int phase = 0; phase < 3; ++phase) {
    holdfast_arrival *here = NULL, *there = NULL;
    OK(holdfast_barrier_arrive(mine, &here, &why));
    GIVES(HOLDFAST_TIMED_OUT, holdfast_barrier_wait(mine, here, &soon, &why));
    CHECK(strstr(why.message, "1 of 2 participants had arrived") != NULL);
    GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_barrier_wait(theirs, here, &soon, &why));
    OK(holdfast_barrier_arrive(theirs, &there, &why));
    OK(holdfast_barrier_wait(mine, here, &later, &why));
    OK(holdfast_barrier_wait(theirs, there, &later, &why));
    GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_barrier_wait(mine, here, &soon, &why));
  }
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 3);
  holdfast_wait quick = told_to(queue, 4);
  quick.timeout_ns = second / 20;
  holdfast_arrival *here = NULL, *there = NULL;
  OK(holdfast_barrier_arrive(mine, &here, &why));
  OK(holdfast_barrier_wait(mine, here, &quick, &why));
  CHECK(next_of(queue).code == HOLDFAST_TIMED_OUT);
  OK(holdfast_barrier_wait(mine, here, &told, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_barrier_wait(mine, here, &told, &why));
  OK(holdfast_barrier_arrive(theirs, &there, &why));
  CHECK(next_of(queue).code == HOLDFAST_OK);
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_barrier_wait(mine, here, &told, &why));
  OK(holdfast_barrier_wait(theirs, there, NULL, &why));
  OK(holdfast_barrier_arrive_and_wait(mine, &told, &why));
  OK(holdfast_barrier_arrive_and_drop(theirs, &why));
  CHECK(next_of(queue).code == HOLDFAST_OK);
  OK(holdfast_barrier_arrive_and_wait(mine, &later, &why));
}

/* The arrival of this thread still counts: its next arrival first waits for that phase. */
static void an_arrival_after_a_timed_out_wait_obeys_its_timeout(void) {
  holdfast_barrier *mine = NULL, *theirs = NULL;
  OK(holdfast_barrier_open(store, "b", 2, 0, &mine, &why));
  OK(holdfast_barrier_open(other, "b", 2, 0, &theirs, &why));
  const holdfast_wait soon = timed(second / 20), once = timed(HOLDFAST_ONE_TRY);
  holdfast_wait stopped = timed(HOLDFAST_NO_LIMIT);
  OK(holdfast_stop_open(&stopped.stop, &why));
  OK(holdfast_stop_request(stopped.stop, &why));
  GIVES(HOLDFAST_TIMED_OUT, holdfast_barrier_arrive_and_wait(mine, &soon, &why));
  GIVES(HOLDFAST_TIMED_OUT, holdfast_barrier_arrive_and_wait(mine, &soon, &why));
  GIVES(HOLDFAST_BUSY, holdfast_barrier_arrive_and_wait(mine, &once, &why));
  GIVES(HOLDFAST_CANCELLED, holdfast_barrier_arrive_and_wait(mine, &stopped, &why));
  OK(holdfast_barrier_arrive_and_wait(theirs, NULL, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 3);
  OK(holdfast_barrier_arrive_and_wait(theirs, &told, &why));
  OK(holdfast_barrier_arrive_and_wait(mine, NULL, &why));
  CHECK(next_of(queue).code == HOLDFAST_OK);
}

static void an_arrival_that_waits_for_the_previous_phase_can_be_cancelled(void) {
  holdfast_barrier *mine = NULL, *theirs = NULL;
  OK(holdfast_barrier_open(store, "b", 3, 0, &mine, &why));
  OK(holdfast_barrier_open(other, "b", 3, 0, &theirs, &why));
  const holdfast_wait soon = timed(second / 20), once = timed(HOLDFAST_ONE_TRY);
  holdfast_arrival *first = NULL, *next = NULL;
  OK(holdfast_barrier_arrive(mine, &first, &why));
  OK(holdfast_close(first, &why));
  GIVES(HOLDFAST_TIMED_OUT, holdfast_barrier_arrive_within(mine, &soon, &next, &why));
  GIVES(HOLDFAST_BUSY, holdfast_barrier_arrive_within(mine, &once, &next, &why));
  GIVES(HOLDFAST_TIMED_OUT, holdfast_barrier_arrive_and_drop_within(mine, &soon, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_wait told = told_to(queue, 1);
  OK(holdfast_stop_open(&told.stop, &why));
  OK(holdfast_barrier_arrive_and_drop_within(mine, &told, &why));
  OK(holdfast_stop_request(told.stop, &why));
  CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
  GIVES(
      HOLDFAST_CANCELLED,
      holdfast_barrier_arrive_within(
          mine,
          &(holdfast_wait){.size = sizeof told, .timeout_ns = HOLDFAST_NO_LIMIT, .stop = told.stop},
          &next, &why));
  CHECK(next == NULL);
  holdfast_name_info info = {.size = sizeof info};
  OK(holdfast_show(store, "b", &info, &why));
  CHECK(info.waiters == 1);
  /* The other two arrive, and then all three in the next phase: waits for an arrival of an event.
   */
  told = told_to(queue, 2);
  OK(holdfast_barrier_arrive_and_wait(theirs, &told, &why));
  told.tag = 3;
  OK(holdfast_barrier_arrive_within(mine, &told, NULL, &why));
  holdfast_barrier* last = NULL;
  OK(holdfast_barrier_open(other, "b", 3, 0, &last, &why));
  OK(holdfast_barrier_arrive_and_wait(last, NULL, &why));
  holdfast_event one = next_of(queue), two = next_of(queue);
  CHECK(one.code == HOLDFAST_OK && two.code == HOLDFAST_OK);
  next = (holdfast_arrival*)(one.tag == 3 ? one.lease : two.lease);
  CHECK(next != NULL);
  OK(holdfast_barrier_arrive_and_drop(last, &why));
  OK(holdfast_barrier_arrive_and_wait(theirs, NULL, &why));
  OK(holdfast_barrier_wait(mine, next, NULL, &why));
}

static void one_candidate_leads_and_every_session_can_read_the_leader(void) {
  const holdfast_election_options here = {.size = sizeof here, .note = "here"};
  holdfast_lock *mine = NULL, *theirs = NULL;
  OK(holdfast_election(store, "e", &here, &mine, &why));
  OK(holdfast_election(other, "e", NULL, &theirs, &why));
  holdfast_leader leader = {.size = sizeof leader};
  OK(holdfast_election_leader(theirs, &leader, &why));
  CHECK(leader.term == 0);
  holdfast_lease* lease = taken(mine);
  GIVES(HOLDFAST_BUSY, tried(theirs));
  OK(holdfast_election_leader(theirs, &leader, &why));
  CHECK(leader.term == info_of(lease).fence && strcmp(leader.note, "here") == 0);
  CHECK(leader.pid == (uint32_t)getpid());
  holdfast_leaders* leaders = NULL;
  OK(holdfast_election_observe(theirs, &leaders, &why));
  OK(holdfast_leaders_next(leaders, NULL, &leader, &why));
  CHECK(leader.term == info_of(lease).fence);
  const holdfast_wait soon = timed(second / 20);
  GIVES(HOLDFAST_TIMED_OUT, holdfast_leaders_next(leaders, &soon, &leader, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 7);
  OK(holdfast_leaders_next(leaders, &told, NULL, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_leaders_next(leaders, &soon, &leader, &why));
  OK(holdfast_leaders_found(leaders, &leader, &why));
  CHECK(leader.term == info_of(lease).fence);
  OK(holdfast_release(lease, NULL, &why));
  lease = taken(mine);
  const holdfast_event event = next_of(queue);
  CHECK(event.tag == 7 && event.code == HOLDFAST_OK && event.number == info_of(lease).fence);
  OK(holdfast_leaders_found(leaders, &leader, &why));
  CHECK(leader.term == event.number && strcmp(leader.note, "here") == 0);
  holdfast_wait quick = told_to(queue, 8);
  quick.timeout_ns = second / 20;
  OK(holdfast_leaders_next(leaders, &quick, NULL, &why));
  CHECK(next_of(queue).code == HOLDFAST_TIMED_OUT);
  OK(holdfast_leaders_next(leaders, &told, NULL, &why));
  OK(holdfast_close(leaders, &why));
  CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
  OK(holdfast_release(lease, NULL, &why));
}

static void a_condition_wait_releases_and_reacquires_the_mutex(void) {
  holdfast_condition *mine = NULL, *theirs = NULL;
  OK(holdfast_condition_open(store, "c", &mine, &why));
  OK(holdfast_condition_open(other, "c", &theirs, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  const uint64_t before = info_of(lease).fence;
  OK(holdfast_lease_watch(lease, queue, 10, &why));
  const holdfast_wait told = told_to(queue, 9);
  OK(holdfast_condition_wait(mine, lease, &told, NULL, &why));
  holdfast_lease* between = taken(mutex_of(other, "m")); /* so it waits, and has given it up */
  GIVES(HOLDFAST_NOT_OWNER, holdfast_lease_check(lease, &why));
  GIVES(HOLDFAST_NOT_OWNER, holdfast_release(lease, NULL, &why)); /* and changes nothing */
  GIVES(HOLDFAST_NOT_OWNER, holdfast_release(lease, &told, &why));
  uint32_t woken = 9;
  OK(holdfast_condition_notify_one(theirs, &woken, &why));
  CHECK(woken == 1);
  OK(holdfast_release(between, NULL, &why));
  const holdfast_event event = next_of(queue);
  CHECK(event.tag == 9 && event.code == HOLDFAST_OK && event.number == 1);
  CHECK(event.lease == lease && info_of(lease).fence > before);
  const holdfast_wait soon = timed(second / 20);
  uint32_t notified = 9;
  OK(holdfast_condition_wait(mine, lease, &soon, &notified, &why));
  CHECK(notified == 0);
  OK(holdfast_lease_check(lease, &why));
  OK(holdfast_condition_notify_all(theirs, &woken, &why));
  CHECK(woken == 0);
  holdfast_lock* shared = NULL;
  OK(holdfast_shared_mutex(store, "rw", 0, NULL, &shared, &why));
  holdfast_lease* wrong = taken(shared);
  GIVES(HOLDFAST_NOT_OWNER, holdfast_condition_wait(mine, wrong, &soon, &notified, &why));
  OK(holdfast_lease_check(wrong, &why));
  OK(holdfast_lease_extend(lease, 2000, &why)); /* so that the loss is soon seen */
  lose("m");
  CHECK(next_of(queue).tag == 10); /* it is watched as before the waits */
}

static void a_condition_wait_that_fails_reports_the_loss_to_each_watch_of_the_lease(void) {
  holdfast_condition* condition = NULL;
  OK(holdfast_condition_open(store, "c", &condition, &why));
  holdfast_queue *queue = NULL, *outcomes = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  OK(holdfast_queue_open(&outcomes, NULL, &why));
  for (int with_a_queue = 0; with_a_queue < 2; ++with_a_queue) {
    holdfast_lease* lease = taken(mutex_of(store, "m"));
    for (int tag = 1; tag <= 2; ++tag) OK(holdfast_lease_watch(lease, queue, tag, &why));
    holdfast_wait stopped = with_a_queue ? told_to(outcomes, 9) : timed(HOLDFAST_NO_LIMIT);
    OK(holdfast_stop_open(&stopped.stop, &why));
    OK(holdfast_stop_request(stopped.stop, &why));
    uint32_t notified = 9;
    const int code = holdfast_condition_wait(condition, lease, &stopped, &notified, &why);
    CHECK(code == (with_a_queue ? HOLDFAST_OK : HOLDFAST_CANCELLED));
    if (with_a_queue) CHECK(next_of(outcomes).code == HOLDFAST_CANCELLED);
    for (uint64_t tag = 1; tag <= 2; ++tag) {
      const holdfast_event event = next_of(queue);
      CHECK(event.kind == HOLDFAST_LEASE_LOST && event.tag == tag && event.lease == lease);
      CHECK(event.code == HOLDFAST_LOST);
    }
    holdfast_event more = {.size = sizeof more};
    GIVES(HOLDFAST_TIMED_OUT, holdfast_queue_next(queue, HOLDFAST_ONE_TRY, &more, &why));
    GIVES(HOLDFAST_NOT_OWNER, holdfast_lease_check(lease, &why));
    GIVES(HOLDFAST_OK, tried(mutex_of(other, "m")));
  }
}

struct wait_of_a_thread {
  holdfast_condition* condition;
  holdfast_lease* lease;
  int code;
};

static void* wait_for_a_condition(void* of) {
  struct wait_of_a_thread* const mine = of;
  uint32_t notified = 9;
  mine->code = holdfast_condition_wait(mine->condition, mine->lease, NULL, &notified, NULL);
  return NULL;
}

static void a_lease_closed_during_a_condition_wait_is_not_held_afterwards(void) {
  holdfast_condition* condition = NULL;
  OK(holdfast_condition_open(store, "c", &condition, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 9);
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  OK(holdfast_lease_watch(lease, queue, 10, &why)); /* which was not lost, but closed */
  OK(holdfast_condition_wait(condition, lease, &told, NULL, &why));
  holdfast_lease* between = taken(mutex_of(other, "m")); /* so it waits, and has given it up */
  OK(holdfast_close(lease, &why));
  OK(holdfast_condition_notify_one(condition, NULL, &why));
  OK(holdfast_release(between, NULL, &why));
  const holdfast_event event = next_of(queue);
  CHECK(event.kind == HOLDFAST_DONE && event.code == HOLDFAST_CANCELLED);
  struct wait_of_a_thread blocks = {condition, taken(mutex_of(other, "m")), HOLDFAST_OK};
  OK(holdfast_lease_watch(blocks.lease, queue, 11, &why));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_for_a_condition, &blocks) == 0);
  between = taken(mutex_of(store, "m"));
  OK(holdfast_close(blocks.lease, &why));
  OK(holdfast_condition_notify_one(condition, NULL, &why));
  OK(holdfast_release(between, NULL, &why));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(blocks.code == HOLDFAST_CANCELLED);
  holdfast_event none = {.size = sizeof none};
  GIVES(HOLDFAST_TIMED_OUT, holdfast_queue_next(queue, HOLDFAST_ONE_TRY, &none, &why));
  OK(holdfast_release(taken(mutex_of(store, "m")), NULL, &why));
}

static void a_lease_in_a_condition_wait_keeps_its_session_open(void) {
  holdfast_condition* condition = NULL;
  OK(holdfast_condition_open(other, "c", &condition, &why));
  holdfast_lock* lock = mutex_of(store, "m");
  holdfast_lease* lease = taken(lock);
  OK(holdfast_close(lock, &why));
  OK(holdfast_close(store, &why));
  const holdfast_wait soon = timed(second / 50);
  uint32_t notified = 9;
  OK(holdfast_condition_wait(condition, lease, &soon, &notified, &why));
  CHECK(notified == 0);
  OK(holdfast_lease_check(lease, &why));
  GIVES(HOLDFAST_BUSY, tried(mutex_of(other, "m")));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_wait told = told_to(queue, 3);
  told.timeout_ns = second / 50;
  OK(holdfast_condition_wait(condition, lease, &told, NULL, &why));
  const holdfast_event event = next_of(queue);
  CHECK(event.code == HOLDFAST_OK && event.number == 0 && event.lease == lease);
  OK(holdfast_lease_check(lease, &why));
  OK(holdfast_release(lease, NULL, &why));
}

static void a_lease_granted_by_an_event_keeps_its_session_open(void) {
  holdfast_condition* condition = NULL;
  OK(holdfast_condition_open(other, "c", &condition, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_lock* lock = mutex_of(store, "m");
  const holdfast_wait told = told_to(queue, 3);
  OK(holdfast_acquire(lock, &told, NULL, &why));
  holdfast_lease* lease = next_of(queue).lease;
  OK(holdfast_close(lock, &why));
  OK(holdfast_close(store, &why));
  const holdfast_wait soon = timed(second / 50);
  uint32_t notified = 9;
  OK(holdfast_condition_wait(condition, lease, &soon, &notified, &why));
  OK(holdfast_lease_check(lease, &why));
  OK(holdfast_release(lease, NULL, &why));
}

static void a_closed_lease_does_not_keep_its_session_open(void) {
  holdfast_condition* condition = NULL;
  OK(holdfast_condition_open(other, "c", &condition, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_lock* lock = mutex_of(store, "m");
  holdfast_lease* lease = taken(lock);
  OK(holdfast_close(lock, &why));
  OK(holdfast_close(store, &why));
  const holdfast_wait told = told_to(queue, 3);
  OK(holdfast_condition_wait(condition, lease, &told, NULL, &why));
  holdfast_lease* between = taken(mutex_of(other, "m")); /* so it waits, and has given it up */
  OK(holdfast_close(lease, &why));
  uint32_t woken = 9;
  OK(holdfast_condition_notify_one(condition, &woken, &why));
  CHECK(woken == 1);
  CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
  OK(holdfast_release(between, NULL, &why));
}

static void closing_a_barrier_cancels_its_waits_and_does_not_keep_the_session_open(void) {
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 3);
  for (int way = 0; way < 2; ++way) {
    holdfast_session* mine = NULL;
    OK(holdfast_open(url, &options, &mine, &why));
    holdfast_lock* lock = mutex_of(mine, "m");
    OK(holdfast_acquire(lock, &told, NULL, &why));
    OK(holdfast_release(next_of(queue).lease, NULL, &why));
    holdfast_lease* held = taken(mutex_of(other, "m"));
    OK(holdfast_acquire(lock, &told, NULL, &why)); /* ends with the session */
    holdfast_barrier* barrier = NULL;
    holdfast_arrival* first = NULL;
    OK(holdfast_barrier_open(mine, way == 0 ? "b0" : "b1", 2, 0, &barrier, &why));
    if (way == 0) OK(holdfast_barrier_arrive(barrier, &first, &why));
    if (way == 0) OK(holdfast_barrier_wait(barrier, first, &told, &why));
    if (way == 1) OK(holdfast_barrier_arrive_and_wait(barrier, &told, &why));
    OK(holdfast_close(lock, &why));
    OK(holdfast_close(mine, &why));
    OK(holdfast_close(barrier, &why));
    if (first != NULL) OK(holdfast_close(first, &why));
    CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
    CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
    OK(holdfast_release(held, NULL, &why));
  }
}

static const int64_t hour_us = (int64_t)3600 * 1000000;

struct taker {
  holdfast_limiter* limiter;
  holdfast_wait how;
  int code;
  holdfast_decision decision;
  int ended;
};
static void* takes(void* of) {
  struct taker* t = of;
  t->code = holdfast_limiter_take(t->limiter, 1, NULL, 0, &t->how, &t->decision, NULL);
  __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void a_wait_for_tokens_ends_when_its_stop_is_requested(void) {
  const holdfast_rule rule = {.tokens = 1, .per_us = hour_us};
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  struct taker t = {.how = timed(HOLDFAST_NO_LIMIT), .decision = {.size = sizeof t.decision}};
  OK(holdfast_limiter_open(store, "r", &rule, 1, 0, &t.limiter, &why));
  OK(holdfast_stop_open(&t.how.stop, &why));
  holdfast_decision d = {.size = sizeof d};
  OK(holdfast_limiter_take(t.limiter, 1, NULL, 0, &once, &d, &why));
  CHECK(d.taken == 1);
  OK(holdfast_limiter_take(t.limiter, 1, NULL, 0, &once, &d, &why));
  CHECK(d.taken == 0); /* nobody called it off */
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, takes, &t) == 0);
  do { /* until it has reserved */
    CHECK(!__atomic_load_n(&t.ended, __ATOMIC_ACQUIRE));
    OK(holdfast_limiter_peek(t.limiter, 1, NULL, 0, &d, &why));
  } while (d.wait_us <= hour_us);
  OK(holdfast_stop_request(t.how.stop, &why));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(t.code == HOLDFAST_CANCELLED && t.decision.taken == 0 && t.decision.tokens == 0);
  GIVES(HOLDFAST_CANCELLED, holdfast_limiter_take(t.limiter, 1, NULL, 0, &t.how, &d, &why));
  CHECK(why.code == HOLDFAST_CANCELLED && d.taken == 0);
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  t.how.queue = queue;
  OK(holdfast_limiter_take(t.limiter, 1, NULL, 0, &t.how, NULL, &why));
  CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
}

static void a_try_with_a_stop_already_requested_takes_no_tokens(void) {
  const holdfast_rule rule = {.tokens = 1, .per_us = hour_us};
  holdfast_limiter* mine = NULL;
  holdfast_wait once = timed(HOLDFAST_ONE_TRY), stopped = once;
  holdfast_decision d = {.size = sizeof d};
  OK(holdfast_limiter_open(store, "r", &rule, 1, 0, &mine, &why));
  OK(holdfast_stop_open(&stopped.stop, &why));
  OK(holdfast_stop_request(stopped.stop, &why));
  GIVES(HOLDFAST_CANCELLED, holdfast_limiter_take(mine, 1, NULL, 0, &stopped, &d, &why));
  CHECK(d.taken == 0 && d.tokens == 0);
  OK(holdfast_limiter_take(mine, 1, NULL, 0, &once, &d, &why));
  CHECK(d.taken == 1);
}

static void tokens_of_a_decision_from_an_event_can_be_given_back(void) {
  const holdfast_rule rule = {.tokens = 3, .per_us = hour_us, .name = "hourly"};
  holdfast_limiter* mine = NULL;
  holdfast_queue* queue = NULL;
  OK(holdfast_limiter_open(store, "r", &rule, 1, 0, &mine, &why));
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 5);
  holdfast_event event = {.size = sizeof event};
  holdfast_decision d = {.size = sizeof d}, now = {.size = sizeof now};
  OK(holdfast_limiter_take(mine, 2, NULL, 0, &told, NULL, &why));
  OK(holdfast_queue_next_decision(queue, 30 * second, &event, &d, &why));
  CHECK(event.tag == 5 && event.code == HOLDFAST_OK && event.number == 1);
  CHECK(d.size == sizeof d && d.taken == 1 && d.tokens == 2 && d.due_us[0] > 0);
  CHECK(d.limit == 3 && d.remaining == 1 && strcmp(d.rule, "hourly") == 0);
  OK(holdfast_limiter_give_back(mine, &d, NULL, 0, &why));
  OK(holdfast_limiter_peek(mine, 3, NULL, 0, &now, &why));
  CHECK(now.taken == 1 && now.remaining == 3);
  const holdfast_wait lock_told = told_to(queue, 6);
  OK(holdfast_acquire(mutex_of(store, "m"), &lock_told, NULL, &why));
  OK(holdfast_queue_next_decision(queue, 30 * second, &event, &d, &why));
  CHECK(event.tag == 6 && event.lease != NULL && d.taken == 0 && d.tokens == 0 && d.rule[0] == 0);
  OK(holdfast_release(event.lease, NULL, &why));
  OK(holdfast_limiter_take(mine, 1, NULL, 0, &told, NULL, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_queue_next_decision(queue, 0, &event, NULL, &why));
  d.size = 4;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_queue_next_decision(queue, 0, &event, &d, &why));
  CHECK(next_of(queue).number == 1); /* what was refused took no event */
  d.size = sizeof d;
  GIVES(HOLDFAST_TIMED_OUT, holdfast_queue_next_decision(queue, 0, &event, &d, &why));
}

static void give_back_refuses_more_tokens_than_a_limiter_can_count(void) {
  const holdfast_rule rule = {.tokens = 3, .per_us = hour_us};
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  holdfast_limiter* mine = NULL;
  OK(holdfast_limiter_open(store, "r", &rule, 1, 0, &mine, &why));
  holdfast_decision d = {.size = sizeof d}, now = {.size = sizeof now};
  OK(holdfast_limiter_take(mine, 1, NULL, 0, &once, &d, &why));
  const uint64_t wrong[] = {UINT64_MAX, UINT64_MAX / 2 + 1};
  for (int i = 0; i < 2; ++i) {
    d.tokens = wrong[i];
    GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_limiter_give_back(mine, &d, NULL, 0, &why));
  }
  OK(holdfast_limiter_peek(mine, 1, NULL, 0, &now, &why));
  CHECK(now.remaining == 2);
  d.tokens = 1;
  OK(holdfast_limiter_give_back(mine, &d, NULL, 0, &why));
  OK(holdfast_limiter_peek(mine, 1, NULL, 0, &now, &why));
  CHECK(now.remaining == 3);
}

static void a_limiter_grants_its_tokens_and_then_returns_the_waiting_time(void) {
  const char* const by[] = {"client"};
  const holdfast_rule rule = {
      .tokens = 3, .per_us = (int64_t)3600 * 1000000, .name = "hourly", .by = by, .by_count = 1};
  const holdfast_part acme = {"client", "acme"}, apex = {"client", "apex"};
  holdfast_limiter* mine = NULL;
  OK(holdfast_limiter_open(store, "r", &rule, 1, 0, &mine, &why));
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  holdfast_decision d = {.size = sizeof d};
  OK(holdfast_limiter_take(mine, 2, &acme, 1, &once, &d, &why));
  CHECK(d.taken == 1 && d.remaining == 1 && d.limit == 3 && strcmp(d.rule, "hourly") == 0);
  OK(holdfast_limiter_peek(mine, 2, &acme, 1, &d, &why));
  CHECK(d.taken == 0 && d.wait_us > 0);
  OK(holdfast_limiter_take(mine, 3, &apex, 1, &once, &d, &why));
  CHECK(d.taken == 1);
  OK(holdfast_limiter_refund(mine, 1, &acme, 1, &why));
  OK(holdfast_limiter_reserve(mine, 3, (int64_t)3600 * 1000000, &acme, 1, &d, &why));
  CHECK(d.taken == 1 && d.wait_us > 0 && d.tokens == 3 && d.due_us[0] > 0);
  OK(holdfast_limiter_give_back(mine, &d, &acme, 1, &why));
  OK(holdfast_limiter_peek(mine, 2, &acme, 1, &d, &why));
  CHECK(d.taken == 1 && d.remaining == 2); /* as if it had not been reserved */
  OK(holdfast_limiter_peek(mine, 3, &acme, 1, &d, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_limiter_give_back(mine, &d, &acme, 1, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_limiter_give_back(mine, NULL, &acme, 1, &why));
  OK(holdfast_limiter_reserve(mine, 3, (int64_t)3600 * 1000000, &acme, 1, &d, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_limiter_take(mine, 4, &acme, 1, &once, &d, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_limiter_take(mine, 1, NULL, 1, &once, &d, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_wait told = told_to(queue, 2);
  told.timeout_ns = HOLDFAST_ONE_TRY;
  OK(holdfast_limiter_take(mine, 1, &acme, 1, &told, NULL, &why));
  const holdfast_event event = next_of(queue);
  CHECK(event.code == HOLDFAST_OK && event.number == 0 && event.wait_us > 0);
}

static void a_multi_lock_takes_all_or_nothing(void) {
  holdfast_lock *semaphore = NULL, *readers = NULL, *writers = NULL, *all = NULL;
  OK(holdfast_semaphore(store, "s", 3, NULL, &semaphore, &why));
  OK(holdfast_shared_mutex(other, "rw", HOLDFAST_FIFO, NULL, &readers, &why));
  OK(holdfast_shared_mutex(store, "rw", HOLDFAST_FIFO, NULL, &writers, &why));
  const holdfast_member members[] = {{.lock = mutex_of(store, "a")},
                                     {.lock = semaphore, .permits = 2},
                                     {.lock = readers, .shared = 1}};
  OK(holdfast_multi_lock(members, 3, &all, &why)); /* over two sessions */
  holdfast_lease* single = taken(mutex_of(other, "a"));
  GIVES(HOLDFAST_BUSY, tried(all));
  OK(holdfast_release(single, NULL, &why));
  single = taken(writers);
  GIVES(HOLDFAST_BUSY, tried(all));
  GIVES(HOLDFAST_OK, tried(mutex_of(other, "a"))); /* nothing was kept */
  OK(holdfast_release(single, NULL, &why));
  holdfast_lease* lease = taken(all);
  uint64_t fences[3] = {0, 0, 0};
  uint32_t count = 1, free_now = 0;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_lease_fences(lease, fences, &count, &why));
  CHECK(count == 3 && fences[0] == 0);
  OK(holdfast_lease_fences(lease, fences, &count, &why));
  CHECK(fences[0] > 0 && fences[1] > 0 && fences[2] > 0);
  GIVES(HOLDFAST_BUSY, tried(mutex_of(other, "a")));
  OK(holdfast_semaphore_available(semaphore, &free_now, &why));
  CHECK(free_now == 1);
  GIVES(HOLDFAST_BUSY, tried(writers));
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  OK(holdfast_acquire_shared(writers, &once, &single, &why)); /* it reads, too */
  OK(holdfast_release(single, NULL, &why));
  OK(holdfast_release(lease, NULL, &why));
  GIVES(HOLDFAST_OK, tried(writers));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_multi_lock(NULL, 1, &all, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_multi_lock(members, 0, &all, &why));
}

static void a_redlock_is_held_by_a_majority(void) {
  holdfast_session* nodes[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) OK(holdfast_open(nodes_urls[i], &options, &nodes[i], &why));
  holdfast_lock *mine = NULL, *theirs = NULL;
  OK(holdfast_redlock(nodes, 3, "q", NULL, &mine, &why));
  OK(holdfast_redlock(nodes, 3, "q", NULL, &theirs, &why));
  holdfast_lease* lease = taken(mine);
  CHECK(info_of(lease).fence > 0);
  GIVES(HOLDFAST_BUSY, tried(theirs));
  uint32_t votes = 0;
  for (int i = 0; i < 3; ++i) {
    holdfast_name_info info = {.size = sizeof info};
    OK(holdfast_show(nodes[i], "q", &info, &why));
    votes += info.holders;
  }
  CHECK(votes >= 2);
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  GIVES(HOLDFAST_UNSUPPORTED, holdfast_lease_extend(lease, 0, &why));
  const holdfast_wait waits = told_to(queue, 1), gives_back = told_to(queue, 2);
  OK(holdfast_acquire(theirs, &waits, NULL, &why));
  OK(holdfast_release(lease, &gives_back, &why));
  GIVES(HOLDFAST_NOT_OWNER, holdfast_release(lease, &gives_back, &why));
  holdfast_lease* next = NULL;
  for (int told = 0; told < 2; ++told) {
    const holdfast_event event = next_of(queue);
    CHECK(event.code == HOLDFAST_OK && (event.lease != NULL) == (event.tag == 1));
    if (event.tag == 1) next = event.lease;
  }
  CHECK(info_of(next).fence > 0);
  holdfast_wait once = told_to(queue, 3);
  once.timeout_ns = HOLDFAST_ONE_TRY;
  OK(holdfast_acquire(mine, &once, NULL, &why));
  CHECK(next_of(queue).code == HOLDFAST_BUSY);
  holdfast_stop* stop = NULL;
  OK(holdfast_stop_open(&stop, &why));
  holdfast_wait stopped = told_to(queue, 4);
  stopped.stop = stop;
  OK(holdfast_acquire(mine, &stopped, NULL, &why));
  OK(holdfast_stop_request(stop, &why));
  CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
  OK(holdfast_release(next, NULL, &why));
  GIVES(HOLDFAST_OK, tried(mine));
}

static void closing_a_multi_lock_or_a_redlock_cancels_its_waits_with_a_queue(void) {
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 1);
  for (int votes = 0; votes < 2; ++votes) {
    holdfast_session* nodes[2] = {NULL, NULL};
    for (int i = 0; i < 2; ++i) OK(holdfast_open(nodes_urls[i], &options, &nodes[i], &why));
    const holdfast_member members[] = {{.lock = mutex_of(nodes[0], "m")},
                                       {.lock = mutex_of(nodes[1], "n")}};
    holdfast_lock *mine = NULL, *in_the_way = mutex_of(other, "m");
    if (votes) OK(holdfast_redlock(&other, 1, "q", NULL, &in_the_way, &why));
    if (votes) OK(holdfast_redlock(nodes, 2, "q", NULL, &mine, &why));
    if (!votes) OK(holdfast_multi_lock(members, 2, &mine, &why));
    holdfast_lease* held = taken(in_the_way);
    OK(holdfast_acquire(mine, &told, NULL, &why));
    for (int i = 0; i < 2; ++i) OK(holdfast_close(members[i].lock, &why));
    for (int i = 0; i < 2; ++i) OK(holdfast_close(nodes[i], &why));
    OK(holdfast_close(mine, &why));
    CHECK(next_of(queue).code == HOLDFAST_CANCELLED);
    OK(holdfast_release(held, NULL, &why));
  }
}

/* ---- effects of options ---------------------------------------------------------------------- */

static holdfast_session* a_third(void) {
  holdfast_session* session = NULL;
  OK(holdfast_open(url, &options, &session, &why));
  return session;
}

static holdfast_lock* candidate_of(holdfast_session* session, int32_t priority) {
  const holdfast_election_options stands = {.size = sizeof stands, .priority = priority};
  holdfast_lock* election = NULL;
  OK(holdfast_election(session, "e", &stands, &election, &why));
  return election;
}

static void the_candidate_with_the_greatest_priority_leads_next(void) {
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait first = told_to(queue, 1), second_one = told_to(queue, 2);
  holdfast_lease* leads = taken(candidate_of(store, 0));
  OK(holdfast_acquire(candidate_of(other, -1), &first, NULL, &why));
  await_waiters("e", 1);
  OK(holdfast_acquire(candidate_of(a_third(), 1), &second_one, NULL, &why));
  await_waiters("e", 2);
  OK(holdfast_release(leads, NULL, &why));
  holdfast_event event = next_of(queue);
  CHECK(event.code == HOLDFAST_OK && event.tag == 2);
  OK(holdfast_release(event.lease, NULL, &why));
  event = next_of(queue);
  CHECK(event.code == HOLDFAST_OK && event.tag == 1);
}

static holdfast_lock* shared_of(holdfast_session* session, const char* name, int preference) {
  holdfast_lock* lock = NULL;
  OK(holdfast_shared_mutex(session, name, preference, NULL, &lock, &why));
  return lock;
}

static void readers_first_pass_a_waiting_writer(void) {
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  const char* const names[] = {"fifo", "readers"};
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait waits_for_it = told_to(queue, 1);
  for (int preference = HOLDFAST_FIFO; preference <= HOLDFAST_READERS_FIRST; ++preference) {
    const char* const name = names[preference];
    holdfast_lease *reads = NULL, *passes = NULL;
    OK(holdfast_acquire_shared(shared_of(store, name, preference), &once, &reads, &why));
    OK(holdfast_acquire(shared_of(other, name, preference), &waits_for_it, NULL, &why));
    await_waiters(name, 1);
    GIVES(preference == HOLDFAST_FIFO ? HOLDFAST_BUSY : HOLDFAST_OK,
          holdfast_acquire_shared(shared_of(a_third(), name, preference), &once, &passes, &why));
    if (passes != NULL) OK(holdfast_release(passes, NULL, &why));
    OK(holdfast_release(reads, NULL, &why));
    CHECK(next_of(queue).code == HOLDFAST_OK);
  }
}

static void writers_first_pass_a_waiting_reader(void) {
  const int preferences[] = {HOLDFAST_FIFO, HOLDFAST_WRITERS_FIRST};
  const char* const names[] = {"fifo", "writers"};
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait reads = told_to(queue, 1), writes = told_to(queue, 2);
  for (int i = 0; i < 2; ++i) {
    holdfast_lease* held = taken(shared_of(store, names[i], preferences[i]));
    OK(holdfast_acquire_shared(shared_of(other, names[i], preferences[i]), &reads, NULL, &why));
    await_waiters(names[i], 1);
    OK(holdfast_acquire(shared_of(a_third(), names[i], preferences[i]), &writes, NULL, &why));
    await_waiters(names[i], 2);
    OK(holdfast_release(held, NULL, &why));
    holdfast_event event = next_of(queue);
    CHECK(event.code == HOLDFAST_OK && event.tag == (i == 0 ? 1 : 2));
    OK(holdfast_release(event.lease, NULL, &why));
    CHECK(next_of(queue).code == HOLDFAST_OK);
  }
}

static void a_waiter_behind_max_waiters_is_refused_at_once(void) {
  const holdfast_lock_options few = {.size = sizeof few, .max_waiters = 1};
  holdfast_lock* lock = NULL;
  holdfast_queue* queue = NULL;
  OK(holdfast_mutex(store, "m", &few, &lock, &why));
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 1);
  holdfast_lease* lease = taken(lock);
  for (int i = 0; i < 3; ++i) OK(holdfast_acquire(lock, &told, NULL, &why));
  CHECK(next_of(queue).code == HOLDFAST_OVERLOADED && why.retryable);
  CHECK(next_of(queue).code == HOLDFAST_OVERLOADED);
  OK(holdfast_release(lease, NULL, &why));
  CHECK(next_of(queue).code == HOLDFAST_OK);
}

static uint32_t holders(holdfast_session* session, const char* name) {
  holdfast_name_info info = {.size = sizeof info};
  OK(holdfast_show(session, name, &info, &why));
  return info.holders;
}

static void an_idle_mutex_with_linger_stays_until_another_wants_it(void) {
  const holdfast_lock_options stays = {.size = sizeof stays, .linger_us = hour_us};
  holdfast_lock* lock = NULL;
  OK(holdfast_release(taken(mutex_of(store, "m")), NULL, &why));
  CHECK(holders(other, "m") == 0);
  OK(holdfast_mutex(store, "m", &stays, &lock, &why));
  OK(holdfast_release(taken(lock), NULL, &why));
  CHECK(holders(other, "m") == 1);
  OK(holdfast_release(taken(mutex_of(other, "m")), NULL, &why));
}

static uint64_t tokens_left(holdfast_limiter* limiter) {
  holdfast_decision d = {.size = sizeof d};
  OK(holdfast_limiter_peek(limiter, 1, NULL, 0, &d, &why));
  return d.remaining;
}

static void local_tokens_are_taken_at_once_and_given_out_by_the_process(void) {
  const holdfast_rule rule = {.tokens = 100, .per_us = 100 * hour_us};
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  holdfast_limiter *mine = NULL, *theirs = NULL;
  holdfast_decision d = {.size = sizeof d};
  OK(holdfast_limiter_open(store, "r", &rule, 1, 10, &mine, &why));
  OK(holdfast_limiter_open(other, "r", &rule, 1, 0, &theirs, &why));
  for (int i = 0; i < 10; ++i) {
    OK(holdfast_limiter_take(mine, 1, NULL, 0, &once, &d, &why));
    /* They last for 100 ms: a slow test takes tens more than once. */
    CHECK(d.taken == 1 && tokens_left(theirs) % 10 == 0);
  }
  OK(holdfast_limiter_take(mine, 1, NULL, 0, &once, &d, &why));
  CHECK(d.taken == 1 && tokens_left(theirs) <= 80);
}

static void tokens_of_an_interval_come_back_all_at_once(void) {
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  const char* const names[] = {"one by one", "at once"};
  for (uint32_t interval = 0; interval < 2; ++interval) {
    const holdfast_rule rule = {.tokens = 4, .per_us = hour_us, .interval = interval};
    holdfast_limiter* limiter = NULL;
    holdfast_decision d = {.size = sizeof d};
    OK(holdfast_limiter_open(store, names[interval], &rule, 1, 0, &limiter, &why));
    OK(holdfast_limiter_take(limiter, 4, NULL, 0, &once, &d, &why));
    OK(holdfast_limiter_peek(limiter, 1, NULL, 0, &d, &why));
    CHECK(d.taken == 0 && (interval == 1) == (d.wait_us > hour_us / 2)); /* or a quarter */
  }
}

/* ---- extreme times --------------------------------------------------------------------------- */

static const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, -1, INT64_MAX - 1, INT64_MAX};
enum { extremes_count = sizeof extremes / sizeof *extremes };

/* True if the object was made, and so has to work. */
static int used(int code) {
  CHECK(code == HOLDFAST_OK || code == HOLDFAST_INVALID_ARGUMENT);
  return code == HOLDFAST_OK;
}

static void extreme_times_of_sessions_and_locks_are_used_or_refused(void) {
  for (int e = 0; e < extremes_count; ++e) {
    const int64_t t = extremes[e];
    for (int field = 0; field < 2; ++field) {
      holdfast_session_options given = options;
      *(field == 0 ? &given.lease_ms : &given.store_timeout_ms) = t;
      holdfast_session* session = NULL;
      if (used(holdfast_open(url, &given, &session, &why))) OK(tried(mutex_of(session, "m")));
    }
    holdfast_lock_options each[4];
    for (int i = 0; i < 4; ++i) {
      each[i] = (holdfast_lock_options){.size = sizeof each[i]};
      *(i == 0   ? &each[i].lease_ms
        : i == 1 ? &each[i].max_hold_ms
        : i == 2 ? &each[i].local_time_us
                 : &each[i].linger_us) = t;
      holdfast_lock* lock = NULL;
      if (used(holdfast_mutex(store, "m", &each[i], &lock, &why))) OK(tried(lock));
    }
    holdfast_lease* lease = taken(mutex_of(store, "m"));
    (void)used(holdfast_lease_extend(lease, t, &why));
    CHECK(info_of(lease).state == HOLDFAST_HELD);
    OK(holdfast_release(lease, NULL, &why));
  }
}

static void extreme_times_of_other_primitives_are_used_or_refused(void) {
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  for (int e = 0; e < extremes_count; ++e) {
    const int64_t t = extremes[e];
    holdfast_latch* latch = NULL;
    if (used(holdfast_latch_open(store, "l", 1, t, &latch, &why))) {
      OK(holdfast_latch_count_down(latch, 1, NULL, &why));
      OK(holdfast_latch_remove(latch, &why));
    }
    holdfast_barrier* barrier = NULL;
    holdfast_arrival* arrival = NULL;
    if (used(holdfast_barrier_open(store, "b", 1, t, &barrier, &why))) {
      OK(holdfast_barrier_arrive(barrier, &arrival, &why));
      OK(holdfast_barrier_wait(barrier, arrival, &once, &why));
      OK(holdfast_close(barrier, &why));
    }
    const holdfast_rule rule = {.tokens = 1, .per_us = t};
    holdfast_limiter* limiter = NULL;
    holdfast_decision d = {.size = sizeof d};
    if (used(holdfast_limiter_open(store, "odd", &rule, 1, 0, &limiter, &why)))
      OK(holdfast_limiter_take(limiter, 1, NULL, 0, &once, &d, &why));
    const holdfast_rule usual = {.tokens = 9, .per_us = 1000000};
    OK(holdfast_limiter_open(store, "r", &usual, 1, 0, &limiter, &why));
    (void)used(holdfast_limiter_reserve(limiter, 1, t, NULL, 0, &d, &why));
    holdfast_redlock_options each[3];
    for (int i = 0; i < 3; ++i) {
      each[i] = (holdfast_redlock_options){.size = sizeof each[i]};
      *(i == 0   ? &each[i].lease_ms
        : i == 1 ? &each[i].node_timeout_ms
                 : &each[i].trust_after_ms) = t;
      holdfast_lock* lock = NULL;
      if (!used(holdfast_redlock(&store, 1, "q", &each[i], &lock, &why))) continue;
      const int untrusted = i == 2 && t > 0 && strncmp(url, "redis", 5) == 0; /* it started later */
      GIVES(untrusted ? HOLDFAST_UNAVAILABLE : HOLDFAST_OK, tried(lock));
    }
  }
}

/* A negative timeout is no limit: the call waits for a lock of another session, as with a large
 * one. */
static void extreme_times_of_waits_are_used(void) {
  holdfast_queue* queue = NULL;
  int fd = -1;
  OK(holdfast_queue_open(&queue, &fd, &why));
  holdfast_lock *mine = mutex_of(store, "m"), *theirs = mutex_of(other, "m");
  for (int e = 0; e < extremes_count; ++e) {
    const int64_t t = extremes[e];
    holdfast_lease* held = taken(mine);
    struct waiter w = {.lock = theirs, .how = timed(t)};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, waits, &w) == 0);
    await_waiter("m", &w);
    OK(holdfast_release(held, NULL, &why));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(w.code == HOLDFAST_OK);
    holdfast_wait later = told_to(queue, 1);
    later.timeout_ns = t;
    OK(holdfast_acquire(mine, &later, NULL, &why));
    while (waiters("m") == 0) CHECK(!readable(fd));
    OK(holdfast_release(w.lease, NULL, &why));
    holdfast_event event = {.size = sizeof event};
    OK(holdfast_queue_next(queue, t, &event, &why));
    CHECK(event.kind == HOLDFAST_DONE && event.code == HOLDFAST_OK);
    OK(holdfast_release(event.lease, NULL, &why));
  }
}

/* ---- misuse ---------------------------------------------------------------------------------- */

/* Calls every function that takes a handle with this handle. */
static void refused_everywhere(void* bad, int for_leases) {
  const int wrong = HOLDFAST_INVALID_ARGUMENT;
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  holdfast_lock* lock = NULL;
  holdfast_lease* lease = NULL;
  holdfast_latch* latch = NULL;
  holdfast_barrier* barrier = NULL;
  holdfast_arrival* arrival = NULL;
  holdfast_condition* condition = NULL;
  holdfast_limiter* limiter = NULL;
  holdfast_leaders* leaders = NULL;
  holdfast_leader leader = {.size = sizeof leader};
  holdfast_decision decision = {.size = sizeof decision};
  holdfast_name_info about = {.size = sizeof about};
  holdfast_lease_info info = {.size = sizeof info};
  holdfast_event event = {.size = sizeof event};
  const holdfast_rule rule = {.tokens = 1, .per_us = 1000000};
  const holdfast_member member = {.lock = bad};
  holdfast_session* nodes[1] = {bad};
  uint32_t n = 1;
  uint64_t fence = 0;
  char text[256];
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  GIVES(wrong, holdfast_session_url(bad, text, sizeof text, &why));
  GIVES(wrong, holdfast_show(bad, "m", &about, &why));
  GIVES(wrong, holdfast_force_release(bad, "m", NULL, NULL, &why));
  GIVES(wrong, holdfast_mutex(bad, "m", NULL, &lock, &why));
  GIVES(wrong, holdfast_fair_mutex(bad, "m", NULL, &lock, &why));
  GIVES(wrong, holdfast_shared_mutex(bad, "m", 0, NULL, &lock, &why));
  GIVES(wrong, holdfast_semaphore(bad, "m", 1, NULL, &lock, &why));
  GIVES(wrong, holdfast_election(bad, "m", NULL, &lock, &why));
  GIVES(wrong, holdfast_multi_lock(&member, 1, &lock, &why));
  GIVES(wrong, holdfast_redlock(nodes, 1, "m", NULL, &lock, &why));
  GIVES(wrong, holdfast_latch_open(bad, "m", 1, 0, &latch, &why));
  GIVES(wrong, holdfast_barrier_open(bad, "m", 1, 0, &barrier, &why));
  GIVES(wrong, holdfast_condition_open(bad, "m", &condition, &why));
  GIVES(wrong, holdfast_limiter_open(bad, "m", &rule, 1, 0, &limiter, &why));
  GIVES(wrong, holdfast_semaphore_available(bad, &n, &why));
  GIVES(wrong, holdfast_election_leader(bad, &leader, &why));
  GIVES(wrong, holdfast_election_observe(bad, &leaders, &why));
  GIVES(wrong, holdfast_leaders_next(bad, &once, &leader, &why));
  GIVES(wrong, holdfast_leaders_found(bad, &leader, &why));
  GIVES(wrong, holdfast_acquire(bad, &once, &lease, &why));
  GIVES(wrong, holdfast_acquire_shared(bad, &once, &lease, &why));
  GIVES(wrong, holdfast_acquire_permits(bad, 1, &once, &lease, &why));
  GIVES(wrong, holdfast_downgrade(bad, NULL, &why));
  GIVES(wrong, holdfast_upgrade(bad, NULL, &why));
  GIVES(wrong, holdfast_latch_count_down(bad, 1, NULL, &why));
  GIVES(wrong, holdfast_latch_wait(bad, &once, &why));
  GIVES(wrong, holdfast_latch_remaining(bad, &n, &why));
  GIVES(wrong, holdfast_latch_remove(bad, &why));
  GIVES(wrong, holdfast_barrier_arrive(bad, &arrival, &why));
  GIVES(wrong, holdfast_barrier_wait(bad, bad, &once, &why));
  GIVES(wrong, holdfast_barrier_arrive_and_wait(bad, &once, &why));
  GIVES(wrong, holdfast_barrier_arrive_and_drop(bad, &why));
  GIVES(wrong, holdfast_barrier_arrive_within(bad, &once, &arrival, &why));
  GIVES(wrong, holdfast_barrier_arrive_and_drop_within(bad, &once, &why));
  GIVES(wrong, holdfast_condition_wait(bad, bad, &once, &n, &why));
  GIVES(wrong, holdfast_condition_notify_one(bad, &n, &why));
  GIVES(wrong, holdfast_condition_notify_all(bad, &n, &why));
  GIVES(wrong, holdfast_limiter_take(bad, 1, NULL, 0, &once, &decision, &why));
  GIVES(wrong, holdfast_limiter_reserve(bad, 1, 0, NULL, 0, &decision, &why));
  GIVES(wrong, holdfast_limiter_peek(bad, 1, NULL, 0, &decision, &why));
  GIVES(wrong, holdfast_limiter_refund(bad, 1, NULL, 0, &why));
  GIVES(wrong, holdfast_limiter_give_back(bad, &decision, NULL, 0, &why));
  GIVES(wrong, holdfast_queue_next(bad, 0, &event, &why));
  GIVES(wrong, holdfast_queue_next_decision(bad, 0, &event, &decision, &why));
  GIVES(wrong, holdfast_stop_request(bad, &why));
  GIVES(wrong, holdfast_close(bad, &why));
  GIVES(for_leases, holdfast_lease_info_of(bad, &info, &why));
  GIVES(for_leases, holdfast_lease_fences(bad, &fence, &n, &why));
  GIVES(for_leases, holdfast_lease_check(bad, &why));
  GIVES(for_leases, holdfast_lease_extend(bad, 0, &why));
  GIVES(for_leases, holdfast_lease_watch(bad, queue, 1, &why));
  GIVES(for_leases, holdfast_release(bad, NULL, &why));
  OK(holdfast_close(queue, &why));
  CHECK(lock == NULL && lease == NULL);
}

static void every_function_refuses_null_and_closed_handles(void) {
  refused_everywhere(NULL, HOLDFAST_INVALID_ARGUMENT);
  holdfast_stop* closed = NULL;
  OK(holdfast_stop_open(&closed, &why));
  OK(holdfast_close(closed, &why));
  refused_everywhere(closed, HOLDFAST_NOT_OWNER);
  int here = 0;
  refused_everywhere(&here, HOLDFAST_NOT_OWNER); /* an address was never a handle */
}

static void a_handle_of_another_type_is_refused(void) {
  holdfast_lock* lock = mutex_of(store, "m");
  holdfast_lease* lease = taken(lock);
  holdfast_queue* queue = NULL;
  uint32_t n = 0;
  OK(holdfast_queue_open(&queue, NULL, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_acquire((void*)store, NULL, &lease, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_mutex((void*)lock, "m", NULL, &lock, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_semaphore_available(lock, &n, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_downgrade(lock, lease, &why));
  GIVES(HOLDFAST_NOT_OWNER, holdfast_release((void*)queue, NULL, &why));
  holdfast_wait how = told_to((void*)lock, 1);
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_acquire(lock, &how, &lease, &why));
  how = timed(0);
  how.stop = (void*)lock;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_acquire(lock, &how, &lease, &why));
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_lease_watch(lease, (void*)lock, 1, &why));
  OK(holdfast_release(lease, NULL, &why));
}

static void required_pointers_must_not_be_null(void) {
  holdfast_lock* lock = mutex_of(store, "m");
  const int wrong = HOLDFAST_INVALID_ARGUMENT;
  GIVES(wrong, holdfast_open(NULL, NULL, &store, &why));
  GIVES(wrong, holdfast_open(url, NULL, NULL, &why));
  GIVES(wrong, holdfast_mutex(store, NULL, NULL, &lock, &why));
  GIVES(wrong, holdfast_mutex(store, "m", NULL, NULL, &why));
  GIVES(wrong, holdfast_acquire(lock, NULL, NULL, &why));
  GIVES(wrong, holdfast_show(store, "m", NULL, &why));
  GIVES(wrong, holdfast_queue_open(NULL, NULL, &why));
  GIVES(wrong, holdfast_stop_open(NULL, &why));
  GIVES(HOLDFAST_OK, tried(lock)); /* nothing was taken on the way */
}

static void a_wrong_size_is_refused(void) {
  holdfast_lock* lock = NULL;
  holdfast_lock_options wrong = {.size = 0, .lease_ms = 5000};
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_mutex(store, "m", &wrong, &lock, &why));
  wrong.size = (uint32_t)sizeof wrong - 1;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_mutex(store, "m", &wrong, &lock, &why));
  wrong.size = 0xFFFFFFFF;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_mutex(store, "m", &wrong, &lock, &why));
  wrong.size = sizeof wrong;
  OK(holdfast_mutex(store, "m", &wrong, &lock, &why));
  holdfast_name_info info = {.size = 4};
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_show(store, "m", &info, &why));
  holdfast_error unset = {.size = 0, .code = 77};
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_close(store, &unset));
  CHECK(unset.code == 77);
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_acquire_permits(lock, 0, NULL, NULL, &unset));
  CHECK(unset.code == 77);
  unset.size = 0xFFFFFFFF;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_close(store, &unset));
  CHECK(unset.code == 77);
  OK(holdfast_close(store, &why)); /* what was refused did nothing */
}

static void fields_unknown_to_this_library_are_set_to_zero_in_results(void) {
  struct {
    holdfast_name_info known;
    uint64_t unknown, behind;
  } later = {{.size = sizeof(holdfast_name_info) + sizeof(uint64_t)}, 77, 77};
  OK(holdfast_show(store, "m", &later.known, &why));
  CHECK(later.known.size == sizeof later - sizeof later.behind);
  CHECK(later.unknown == 0 && later.behind == 77);
  struct {
    holdfast_error known;
    uint64_t unknown, behind;
  } later_why = {{.size = sizeof(holdfast_error) + sizeof(uint64_t), .unused = {77}}, 77, 77};
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_close(NULL, &later_why.known));
  CHECK(later_why.known.code == HOLDFAST_INVALID_ARGUMENT && later_why.known.unused[0] == 0);
  CHECK(later_why.unknown == 0 && later_why.behind == 77);
}

/* The only struct that has got fields since its first version. */
static void a_struct_of_an_earlier_version_gets_its_fields_and_no_byte_behind_them(void) {
  struct {
    uint32_t size, taken;
    int64_t wait_us;
    uint64_t limit, remaining;
    int64_t reset_us;
    char rule[256];
    uint64_t behind[17];
  } first = {.size = offsetof(holdfast_decision, tokens)};
  CHECK(sizeof first == sizeof(holdfast_decision));
  memset(first.behind, 77, sizeof first.behind);
  uint64_t untouched[17];
  memcpy(untouched, first.behind, sizeof untouched);
  void* const shorter = &first;
  const holdfast_rule rule = {.tokens = 3, .per_us = hour_us, .name = "hourly"};
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  holdfast_limiter* limiter = NULL;
  holdfast_queue* queue = NULL;
  OK(holdfast_limiter_open(store, "r", &rule, 1, 0, &limiter, &why));
  OK(holdfast_limiter_take(limiter, 1, NULL, 0, &once, shorter, &why));
  CHECK(first.taken == 1 && first.limit == 3 && first.remaining == 2);
  CHECK(strcmp(first.rule, "hourly") == 0);
  OK(holdfast_limiter_peek(limiter, 3, NULL, 0, shorter, &why));
  CHECK(first.taken == 0 && first.wait_us > 0);
  OK(holdfast_limiter_reserve(limiter, 1, 0, NULL, 0, shorter, &why));
  CHECK(first.taken == 1 && first.remaining == 1);
  /* It does not say how many tokens were taken, and when they are there. */
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_limiter_give_back(limiter, shorter, NULL, 0, &why));
  OK(holdfast_queue_open(&queue, NULL, &why));
  const holdfast_wait told = told_to(queue, 5);
  holdfast_event event = {.size = sizeof event};
  OK(holdfast_limiter_take(limiter, 1, NULL, 0, &told, NULL, &why));
  OK(holdfast_queue_next_decision(queue, 30 * second, &event, shorter, &why));
  CHECK(first.taken == 1 && first.remaining == 0);
  CHECK(first.size == offsetof(holdfast_decision, tokens));
  CHECK(memcmp(first.behind, untouched, sizeof untouched) == 0);
  first.size -= 1;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_limiter_peek(limiter, 1, NULL, 0, shorter, &why));
}

static void unused_fields_must_be_zero(void) {
  holdfast_lock* lock = NULL;
  holdfast_lease* none = NULL;
  holdfast_session* bad = NULL;
  holdfast_lock_options later = {.size = sizeof later, .unused = {0, 1}};
  GIVES(HOLDFAST_UNSUPPORTED, holdfast_mutex(store, "m", &later, &lock, &why));
  holdfast_session_options of_session = options;
  of_session.unused[1] = 1;
  GIVES(HOLDFAST_UNSUPPORTED, holdfast_open(url, &of_session, &bad, &why));
  holdfast_wait how = timed(HOLDFAST_ONE_TRY);
  how.unused = 1;
  GIVES(HOLDFAST_UNSUPPORTED, holdfast_acquire(mutex_of(store, "m"), &how, &none, &why));
  CHECK(lock == NULL && none == NULL && bad == NULL);
}

static void options_for_deadlocks_of_threads_are_refused(void) {
  holdfast_session* none = NULL;
  for (int field = 0; field < 2; ++field) {
    holdfast_session_options given = options;
    *(field == 0 ? &given.lock_order : &given.find_deadlocks) = 1;
    GIVES(HOLDFAST_UNSUPPORTED, holdfast_open(url, &given, &none, &why));
    CHECK(none == NULL && strstr(why.message, "multi_lock") != NULL);
  }
}

static void a_field_of_a_later_version_is_refused_only_if_it_is_set(void) {
  struct {
    holdfast_lock_options known;
    int64_t unknown;
  } later = {{.size = sizeof later}, 0};
  holdfast_lock* lock = NULL;
  OK(holdfast_mutex(store, "m", &later.known, &lock, &why));
  later.unknown = 1;
  GIVES(HOLDFAST_UNSUPPORTED, holdfast_mutex(store, "m", &later.known, &lock, &why));
}

static void an_error_names_operation_name_store_and_whether_it_is_retryable(void) {
  holdfast_lock* lock = NULL;
  GIVES(HOLDFAST_INVALID_NAME, holdfast_mutex(store, "", NULL, &lock, &why));
  CHECK(why.code == HOLDFAST_INVALID_NAME && why.message[0] != 0 && !why.retryable);
  holdfast_lease *lease = taken(mutex_of(store, "kind")), *none = NULL;
  OK(holdfast_semaphore(other, "kind", 3, NULL, &lock, &why));
  const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
  GIVES(HOLDFAST_KIND_MISMATCH, holdfast_acquire(lock, &once, &none, &why));
  CHECK(strstr(why.name, "kind") != NULL && strstr(why.message, "kind") != NULL);
  CHECK(why.operation[0] != 0 && why.store[0] != 0);
  holdfast_session* bad = NULL;
  GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_open("rediss:/user:secret@x", NULL, &bad, &why));
  CHECK(bad == NULL && strstr(why.message, "secret") == NULL);
  OK(holdfast_release(lease, NULL, &why));
  CHECK(why.code == HOLDFAST_OK && why.message[0] == 0);
  CHECK(strcmp(holdfast_words(HOLDFAST_LOST), "the lock was lost") == 0);
  CHECK(strcmp(holdfast_words(-1), "unknown error") == 0);
  CHECK(holdfast_abi() == 0 && strlen(holdfast_version()) >= 5);
  GIVES(HOLDFAST_INVALID_NAME, holdfast_mutex(store, "", NULL, &lock, NULL));
}

static void error_texts_are_valid_utf8_whatever_the_caller_or_the_store_sent(void) {
  holdfast_lock* lock = NULL;
  GIVES(HOLDFAST_INVALID_NAME, holdfast_mutex(store, "\xc2\x85nel", NULL, &lock, &why));
  CHECK(strstr(why.message, "\\xc2\\x85nel") != NULL && strchr(why.message, '\x85') == NULL);
  CHECK(strcmp(why.name + strlen(why.name) - 5, "\xc2\x85nel") == 0);
  GIVES(HOLDFAST_INVALID_NAME, holdfast_mutex(store, "caf\xe9", NULL, &lock, &why));
  CHECK(strstr(why.message, "caf\\xe9") != NULL && strchr(why.message, '\xe9') == NULL);
  CHECK(strcmp(why.name + strlen(why.name) - 6, "caf\xef\xbf\xbd") == 0); /* U+FFFD */
}

static void the_url_of_a_session_is_whole_or_refused(void) {
  char given[4096], text[4096];
  /* Only these two take any bytes. */
  const int any_bytes = strncmp(url, "memory:", 7) == 0 || strncmp(url, "sqlite:", 7) == 0;
  (void)snprintf(given, sizeof given, "%s%s", url, any_bytes ? "-caf\xe9-\xe9" : "");
  holdfast_session* mine = NULL;
  OK(holdfast_open(given, &options, &mine, &why));
  OK(holdfast_session_url(mine, text, sizeof text, &why));
  const uint64_t whole = strlen(text) + 1;
  const char* const end = "caf\xef\xbf\xbd-\xef\xbf\xbd"; /* U+FFFD */
  CHECK(!any_bytes || strcmp(text + strlen(text) - strlen(end), end) == 0);
  for (uint64_t room = 0; room < whole; ++room)
    GIVES(HOLDFAST_INVALID_ARGUMENT, holdfast_session_url(mine, text, room, &why));
  text[whole] = 77;
  OK(holdfast_session_url(mine, text, whole, &why));
  CHECK(strlen(text) + 1 == whole && text[whole] == 77);
}

/* The error text of a wait that times out. If the text is that the store did not answer in time,
 * the wait is repeated with twice the time. */
typedef int (*timed_wait)(void* at, const holdfast_wait* told);
static void in_vain(timed_wait begin, void* at, const char* waited_for) {
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_wait told = told_to(queue, 1);
  told.timeout_ns = second / 50;
  do {
    OK(begin(at, &told));
    CHECK(next_of(queue).code == HOLDFAST_TIMED_OUT);
    told.timeout_ns *= 2;
  } while (strstr(why.message, "had not answered") != NULL);
  CHECK(strstr(why.message, waited_for) != NULL);
  OK(holdfast_close(queue, &why));
}

static int next_leader(void* at, const holdfast_wait* told) {
  return holdfast_leaders_next(at, told, NULL, &why);
}
static int wait_at_latch(void* at, const holdfast_wait* told) {
  return holdfast_latch_wait(at, told, &why);
}
static int wait_at_barrier(void* at, const holdfast_wait* told) {
  return holdfast_barrier_arrive_and_wait(at, told, &why);
}

/* Without a queue. */
static void names_what_it_waited_for(const char* name, int code) {
  CHECK(code == HOLDFAST_TIMED_OUT || code == HOLDFAST_CANCELLED);
  CHECK(why.code == code && strstr(why.name, name) != NULL && strstr(why.message, name) != NULL);
  CHECK(strncmp(why.store, url, strcspn(url, ":")) == 0 && strstr(why.message, why.store) != NULL);
}

static void the_error_of_a_wait_in_vain_names_what_it_waited_for_and_the_store(void) {
  const holdfast_wait brief = timed(1);
  holdfast_lease* none = NULL;
  (void)taken(mutex_of(other, "a mutex"));
  names_what_it_waited_for("a mutex",
                           holdfast_acquire(mutex_of(store, "a mutex"), &brief, &none, &why));
  holdfast_lock* lock = shared_of(other, "readers", HOLDFAST_FIFO);
  (void)taken(lock);
  names_what_it_waited_for("readers", holdfast_acquire_shared(lock, &brief, &none, &why));
  OK(holdfast_semaphore(store, "permits", 1, NULL, &lock, &why));
  (void)taken(lock);
  names_what_it_waited_for("permits", holdfast_acquire(lock, &brief, &none, &why));
  OK(holdfast_election(store, "terms", NULL, &lock, &why));
  holdfast_leaders* leaders = NULL;
  holdfast_leader leader = {.size = sizeof leader};
  OK(holdfast_election_observe(lock, &leaders, &why));
  names_what_it_waited_for("terms", holdfast_leaders_next(leaders, &brief, &leader, &why));
  (void)taken(lock);
  names_what_it_waited_for("terms", holdfast_acquire(lock, &brief, &none, &why));
  holdfast_latch* latch = NULL;
  OK(holdfast_latch_open(store, "latch", 1, 0, &latch, &why));
  names_what_it_waited_for("latch", holdfast_latch_wait(latch, &brief, &why));
  holdfast_barrier* barrier = NULL;
  holdfast_arrival* arrival = NULL;
  OK(holdfast_barrier_open(store, "barrier", 2, 0, &barrier, &why));
  OK(holdfast_barrier_arrive(barrier, &arrival, &why));
  names_what_it_waited_for("barrier", holdfast_barrier_wait(barrier, arrival, &brief, &why));
  const holdfast_rule rule = {.tokens = 1, .per_us = hour_us};
  holdfast_limiter* limiter = NULL;
  holdfast_decision d = {.size = sizeof d};
  holdfast_wait stopped = timed(HOLDFAST_NO_LIMIT);
  OK(holdfast_limiter_open(store, "tokens", &rule, 1, 0, &limiter, &why));
  OK(holdfast_stop_open(&stopped.stop, &why));
  OK(holdfast_stop_request(stopped.stop, &why));
  names_what_it_waited_for("tokens",
                           holdfast_limiter_take(limiter, 1, NULL, 0, &stopped, &d, &why));
}

static void the_text_of_a_timeout_names_the_awaited_event(void) {
  holdfast_lock* election = NULL;
  holdfast_leaders* leaders = NULL;
  OK(holdfast_election(store, "e", NULL, &election, &why));
  OK(holdfast_election_observe(election, &leaders, &why));
  in_vain(next_leader, leaders, "leader");
  holdfast_latch* latch = NULL;
  OK(holdfast_latch_open(store, "l", 1, 0, &latch, &why));
  in_vain(wait_at_latch, latch, "closed");
  holdfast_barrier* barrier = NULL;
  OK(holdfast_barrier_open(store, "b", 2, 0, &barrier, &why));
  in_vain(wait_at_barrier, barrier, "arrived");
}

/* Threads of a forked child get the stacks of the parent's: so many at a time get all of them. */
enum { many_threads = 32 };
static void* overwrites_its_stack(void* of) {
  char deep[256 * 1024];
  memset(deep, 0x5a, sizeof deep);
  __asm__ volatile("" : : "r"(deep) : "memory");
  (void)pthread_barrier_wait(of);
  return NULL;
}

static void a_child_forked_while_a_thread_waits_leaves_that_wait_alone(void) {
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  struct waiter w = {.lock = mutex_of(other, "m"), .how = timed(HOLDFAST_NO_LIMIT)};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, waits, &w) == 0);
  await_waiter("m", &w);
  const pid_t pid = fork();
  if (pid == 0) {
    (void)alarm(40); /* the parent's alarm is not the child's */
    pthread_t all[many_threads];
    pthread_barrier_t written;
    CHECK(pthread_barrier_init(&written, NULL, many_threads) == 0);
    for (int i = 0; i < many_threads; ++i)
      CHECK(pthread_create(&all[i], NULL, overwrites_its_stack, &written) == 0);
    for (int i = 0; i < many_threads; ++i) CHECK(pthread_join(all[i], NULL) == 0);
    holdfast_session* mine = NULL;
    OK(holdfast_open(url, &options, &mine, &why));
    GIVES(HOLDFAST_OK, tried(mutex_of(mine, "of the child")));
    holdfast_close_all();
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  OK(holdfast_release(lease, NULL, &why));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(w.code == HOLDFAST_OK);
  OK(holdfast_release(w.lease, NULL, &why));
}

static void a_forked_child_gets_an_error_and_can_open_new_sessions(void) {
  holdfast_lock* lock = mutex_of(store, "m");
  holdfast_lease *lease = taken(lock), *none = NULL;
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  const pid_t pid = fork();
  if (pid == 0) {
    const holdfast_wait once = timed(HOLDFAST_ONE_TRY);
    holdfast_event event = {.size = sizeof event};
    GIVES(HOLDFAST_FORKED, holdfast_acquire(lock, &once, &none, &why));
    GIVES(HOLDFAST_FORKED, holdfast_release(lease, NULL, &why));
    GIVES(HOLDFAST_FORKED, holdfast_lease_check(lease, &why));
    GIVES(HOLDFAST_FORKED, holdfast_queue_next(queue, 0, &event, &why));
    GIVES(HOLDFAST_FORKED, holdfast_close(lease, &why));
    holdfast_session* mine = NULL;
    OK(holdfast_open(url, &options, &mine, &why));
    holdfast_lock* again = mutex_of(mine, strncmp(url, "memory:", 7) == 0 ? "other" : "m");
    /* memory: is a separate store in each process. */
    GIVES(strncmp(url, "memory:", 7) == 0 ? HOLDFAST_OK : HOLDFAST_BUSY, tried(again));
    OK(holdfast_close(mine, &why));
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  OK(holdfast_lease_check(lease, &why));
  OK(holdfast_release(lease, NULL, &why));
}

static const struct {
  const char* name;
  void (*holds)(void);
} rules[] = {
#define RULE(name) {#name, name}
    RULE(options_of_sessions_and_locks_take_effect),
    RULE(a_mutex_excludes_others_and_its_fence_increases),
    RULE(a_fair_mutex_shares_names_with_a_mutex),
    RULE(a_wait_with_a_timeout_times_out),
    RULE(a_wait_ends_when_its_stop_is_requested),
    RULE(closing_a_lock_does_not_end_a_wait_of_another_thread),
    RULE(a_second_release_returns_an_error_and_changes_nothing),
    RULE(exactly_one_of_two_concurrent_releases_succeeds),
    RULE(a_closed_lease_is_released),
    RULE(close_all_releases_every_lease),
    RULE(close_all_ends_the_waits_of_other_threads_which_are_granted_nothing),
    RULE(close_all_leaves_nothing_to_a_thread_that_asks_again),
    RULE(close_all_ends_calls_with_a_queue_which_leave_nothing_behind),
    RULE(a_lock_outlives_the_handle_of_its_session),
    RULE(an_extended_lease_has_the_new_length),
    RULE(force_release_with_an_empty_short_id_releases_nothing),
    RULE(the_loss_of_a_lease_is_an_event_and_check_reports_it),
    RULE(a_release_makes_no_loss_event),
    RULE(a_call_with_a_queue_returns_at_once_and_its_outcome_is_an_event),
    RULE(a_call_with_a_queue_can_be_cancelled),
    RULE(a_lock_granted_to_a_closed_queue_is_released),
    RULE(closing_a_queue_releases_leases_of_its_unread_events),
    RULE(closing_a_queue_closes_its_descriptor_while_calls_still_use_the_queue),
    RULE(readers_share_and_a_writer_excludes),
    RULE(a_semaphore_grants_only_its_permits),
    RULE(a_latch_opens_at_zero),
    RULE(a_barrier_opens_when_all_participants_have_arrived),
    RULE(an_arrival_after_a_timed_out_wait_obeys_its_timeout),
    RULE(an_arrival_that_waits_for_the_previous_phase_can_be_cancelled),
    RULE(one_candidate_leads_and_every_session_can_read_the_leader),
    RULE(a_condition_wait_releases_and_reacquires_the_mutex),
    RULE(a_condition_wait_that_fails_reports_the_loss_to_each_watch_of_the_lease),
    RULE(a_lease_closed_during_a_condition_wait_is_not_held_afterwards),
    RULE(a_lease_in_a_condition_wait_keeps_its_session_open),
    RULE(a_lease_granted_by_an_event_keeps_its_session_open),
    RULE(a_closed_lease_does_not_keep_its_session_open),
    RULE(closing_a_barrier_cancels_its_waits_and_does_not_keep_the_session_open),
    RULE(a_wait_for_tokens_ends_when_its_stop_is_requested),
    RULE(a_try_with_a_stop_already_requested_takes_no_tokens),
    RULE(tokens_of_a_decision_from_an_event_can_be_given_back),
    RULE(give_back_refuses_more_tokens_than_a_limiter_can_count),
    RULE(a_limiter_grants_its_tokens_and_then_returns_the_waiting_time),
    RULE(a_multi_lock_takes_all_or_nothing),
    RULE(a_redlock_is_held_by_a_majority),
    RULE(closing_a_multi_lock_or_a_redlock_cancels_its_waits_with_a_queue),
    RULE(the_candidate_with_the_greatest_priority_leads_next),
    RULE(readers_first_pass_a_waiting_writer),
    RULE(writers_first_pass_a_waiting_reader),
    RULE(a_waiter_behind_max_waiters_is_refused_at_once),
    RULE(an_idle_mutex_with_linger_stays_until_another_wants_it),
    RULE(local_tokens_are_taken_at_once_and_given_out_by_the_process),
    RULE(tokens_of_an_interval_come_back_all_at_once),
    RULE(extreme_times_of_sessions_and_locks_are_used_or_refused),
    RULE(extreme_times_of_other_primitives_are_used_or_refused),
    RULE(extreme_times_of_waits_are_used),
    RULE(every_function_refuses_null_and_closed_handles),
    RULE(a_handle_of_another_type_is_refused),
    RULE(required_pointers_must_not_be_null),
    RULE(a_wrong_size_is_refused),
    RULE(fields_unknown_to_this_library_are_set_to_zero_in_results),
    RULE(a_struct_of_an_earlier_version_gets_its_fields_and_no_byte_behind_them),
    RULE(unused_fields_must_be_zero),
    RULE(options_for_deadlocks_of_threads_are_refused),
    RULE(a_field_of_a_later_version_is_refused_only_if_it_is_set),
    RULE(an_error_names_operation_name_store_and_whether_it_is_retryable),
    RULE(error_texts_are_valid_utf8_whatever_the_caller_or_the_store_sent),
    RULE(the_url_of_a_session_is_whole_or_refused),
    RULE(the_error_of_a_wait_in_vain_names_what_it_waited_for_and_the_store),
    RULE(the_text_of_a_timeout_names_the_awaited_event),
    RULE(a_child_forked_while_a_thread_waits_leaves_that_wait_alone),
    RULE(a_forked_child_gets_an_error_and_can_open_new_sessions),
};

/* Prints a line for each field (struct, field, offset, size), and one for each struct with its
 * size. */
static void print_layout(void) {
#define WHOLE(type) printf("%s . 0 %zu\n", #type, sizeof(type))
#define FIELD(type, field) \
  printf("%s %s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(((type*)0)->field))
  WHOLE(holdfast_error), FIELD(holdfast_error, code), FIELD(holdfast_error, retryable);
  FIELD(holdfast_error, outcome_unknown), FIELD(holdfast_error, lease_gone);
  FIELD(holdfast_error, operation), FIELD(holdfast_error, name), FIELD(holdfast_error, store);
  FIELD(holdfast_error, message);
  WHOLE(holdfast_wait), FIELD(holdfast_wait, timeout_ns), FIELD(holdfast_wait, stop);
  FIELD(holdfast_wait, queue), FIELD(holdfast_wait, tag);
  WHOLE(holdfast_event), FIELD(holdfast_event, kind), FIELD(holdfast_event, tag);
  FIELD(holdfast_event, code), FIELD(holdfast_event, lease), FIELD(holdfast_event, number);
  FIELD(holdfast_event, wait_us);
  WHOLE(holdfast_session_options), FIELD(holdfast_session_options, lock_order);
  FIELD(holdfast_session_options, find_deadlocks), FIELD(holdfast_session_options, lease_ms);
  FIELD(holdfast_session_options, store_timeout_ms);
  FIELD(holdfast_session_options, name_prefix);
  WHOLE(holdfast_name_info), FIELD(holdfast_name_info, capacity);
  FIELD(holdfast_name_info, remaining), FIELD(holdfast_name_info, holders);
  FIELD(holdfast_name_info, waiters), FIELD(holdfast_name_info, last_fence);
  FIELD(holdfast_name_info, kind), FIELD(holdfast_name_info, holder);
  WHOLE(holdfast_lease_info), FIELD(holdfast_lease_info, state);
  FIELD(holdfast_lease_info, fence), FIELD(holdfast_lease_info, remaining_ns);
  FIELD(holdfast_lease_info, name), FIELD(holdfast_lease_info, short_id);
  WHOLE(holdfast_lock_options), FIELD(holdfast_lock_options, no_renewal);
  FIELD(holdfast_lock_options, unconfirmed_release), FIELD(holdfast_lock_options, lease_ms);
  FIELD(holdfast_lock_options, max_hold_ms), FIELD(holdfast_lock_options, local_time_us);
  FIELD(holdfast_lock_options, linger_us), FIELD(holdfast_lock_options, max_waiters);
  FIELD(holdfast_lock_options, reason);
  WHOLE(holdfast_election_options), FIELD(holdfast_election_options, priority);
  FIELD(holdfast_election_options, lease_ms), FIELD(holdfast_election_options, note);
  WHOLE(holdfast_leader), FIELD(holdfast_leader, pid), FIELD(holdfast_leader, term);
  FIELD(holdfast_leader, after_gap), FIELD(holdfast_leader, note), FIELD(holdfast_leader, host);
  FIELD(holdfast_leader, program);
  WHOLE(holdfast_member), FIELD(holdfast_member, lock), FIELD(holdfast_member, shared);
  FIELD(holdfast_member, permits);
  WHOLE(holdfast_redlock_options), FIELD(holdfast_redlock_options, lease_ms);
  FIELD(holdfast_redlock_options, node_timeout_ms);
  FIELD(holdfast_redlock_options, trust_after_ms), FIELD(holdfast_redlock_options, reason);
  WHOLE(holdfast_rule), FIELD(holdfast_rule, tokens), FIELD(holdfast_rule, per_us);
  FIELD(holdfast_rule, burst), FIELD(holdfast_rule, name), FIELD(holdfast_rule, by);
  FIELD(holdfast_rule, by_count), FIELD(holdfast_rule, interval);
  WHOLE(holdfast_part), FIELD(holdfast_part, part), FIELD(holdfast_part, value);
  WHOLE(holdfast_decision), FIELD(holdfast_decision, taken), FIELD(holdfast_decision, wait_us);
  FIELD(holdfast_decision, limit), FIELD(holdfast_decision, remaining);
  FIELD(holdfast_decision, reset_us), FIELD(holdfast_decision, rule);
  FIELD(holdfast_decision, tokens), FIELD(holdfast_decision, due_us);
}

static int release_while_another_waits(void) {
  OK(holdfast_open(url, &options, &store, &why));
  OK(holdfast_open(url, &options, &other, &why));
  holdfast_queue* queue = NULL;
  OK(holdfast_queue_open(&queue, NULL, &why));
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  const holdfast_wait how = told_to(queue, 1);
  OK(holdfast_acquire(mutex_of(other, "m"), &how, NULL, &why));
  await_waiters("m", 1);
  if (holdfast_release(lease, NULL, &why) != HOLDFAST_OK) puts(why.message);
  return 0;
}

/* Tells the caller, and waits until it has done its part. */
static void in_turn(const char* now) {
  puts(now);
  CHECK(fflush(stdout) == 0);
  CHECK(getchar() == '\n');
}

static int a_server_that_hangs(void) {
  OK(holdfast_open(url, &options, &store, &why));
  const holdfast_lock_options a_minute = {.size = sizeof a_minute, .lease_ms = 60000};
  holdfast_lock* lock = NULL;
  OK(holdfast_mutex(store, "m", &a_minute, &lock, &why));
  holdfast_lease* lease = taken(lock);
  CHECK(info_of(lease).state == HOLDFAST_HELD);
  in_turn("held");
  GIVES(HOLDFAST_UNAVAILABLE, tried(mutex_of(store, "n")));
  CHECK(why.code == HOLDFAST_UNAVAILABLE && why.retryable && !why.lease_gone && why.store[0] != 0);
  GIVES(HOLDFAST_UNAVAILABLE, holdfast_lease_extend(lease, 0, &why));
  CHECK(info_of(lease).state == HOLDFAST_SUSPECT && info_of(lease).remaining_ns > 0);
  OK(holdfast_lease_check(lease, &why));
  in_turn("suspect");
  OK(holdfast_lease_extend(lease, 0, &why));
  CHECK(info_of(lease).state == HOLDFAST_HELD);
  OK(holdfast_release(lease, NULL, &why));
  return 0;
}

static int a_close_without_the_answer(void) {
  OK(holdfast_open(url, &options, &store, &why));
  OK(holdfast_open(url, &options, &other, &why));
  const holdfast_lock_options given = {.size = sizeof given, .unconfirmed_release = 1};
  holdfast_lock* lock = NULL;
  OK(holdfast_mutex(store, "m", &given, &lock, &why));
  holdfast_lease* lease = taken(lock);
  in_turn("held");
  OK(holdfast_close(lease, &why));
  in_turn("closed");
  OK(holdfast_release(taken(mutex_of(other, "m")), NULL, &why));
  return 0;
}

struct session_in_use {
  holdfast_session* session;
  /* NULL, or made with the session, which is closed already and ends with them. */
  holdfast_barrier* barrier;
  holdfast_condition* condition;
  holdfast_limiter* limiter;
  holdfast_queue* queue;
  pthread_t closer, user;
  int last; /* of the three: which is closed last */
  int closes, is_closed;
};

static void* uses(void* of) {
  struct session_in_use* const mine = of;
  char text[256];
  int code = HOLDFAST_OK;
  while (code == HOLDFAST_OK) {
    code = holdfast_session_url(mine->session, text, sizeof text, NULL);
    holdfast_latch* latch = NULL;
    (void)holdfast_latch_open(mine->session, "", 1, 0, &latch, NULL);
  }
  CHECK(code == HOLDFAST_INVALID_ARGUMENT);
  return NULL;
}

/* The same for calls with a queue, which do not begin, of the object that is closed last. */
static void* uses_with_a_queue(void* of) {
  struct session_in_use* const mine = of;
  const int wrong = HOLDFAST_INVALID_ARGUMENT;
  const holdfast_wait how = told_to(mine->queue, 1);
  const holdfast_part part = {"client", NULL};
  for (int more = 50; more > 0; more -= __atomic_load_n(&mine->closes, __ATOMIC_ACQUIRE)) {
    if (mine->last == 0) GIVES(wrong, holdfast_barrier_wait(mine->barrier, NULL, &how, NULL));
    if (mine->last == 1)
      GIVES(wrong, holdfast_condition_wait(mine->condition, NULL, &how, NULL, NULL));
    if (mine->last == 2)
      GIVES(wrong, holdfast_limiter_take(mine->limiter, 1, &part, 1, &how, NULL, NULL));
  }
  return NULL;
}

static void* closes_session(void* of) {
  struct session_in_use* const mine = of;
  const void* const all[] = {mine->barrier, mine->condition, mine->limiter};
  __atomic_store_n(&mine->closes, 1, __ATOMIC_RELEASE);
  if (mine->queue == NULL) CHECK(holdfast_close(mine->session, NULL) == HOLDFAST_OK);
  for (int i = 0; i < 3 && mine->queue != NULL; ++i)
    CHECK(holdfast_close(all[(mine->last + 1 + i) % 3], NULL) == HOLDFAST_OK);
  __atomic_store_n(&mine->is_closed, 1, __ATOMIC_RELEASE);
  return NULL;
}

/* The end of each session waits for the answer of the server. Calls that ask no store do not. */
static int a_close_of_sessions_in_use(void) {
  enum { count = 16 };
  static struct session_in_use all[count];
  const holdfast_lock_options given = {.size = sizeof given, .unconfirmed_release = 1};
  const char* const by[] = {"client"};
  const holdfast_rule rule = {.tokens = 1, .per_us = hour_us, .by = by, .by_count = 1};
  holdfast_lock* locks[count] = {NULL};
  holdfast_lease* leases[count] = {NULL};
  for (int i = 0; i < count; ++i) {
    char name[8];
    (void)snprintf(name, sizeof name, i == 0 ? "m" : "m%d", i);
    OK(holdfast_open(url, &options, &all[i].session, &why));
    OK(holdfast_mutex(all[i].session, name, &given, &locks[i], &why));
    leases[i] = taken(locks[i]);
    if (i % 2 == 1) {
      all[i].last = i / 2 % 3;
      OK(holdfast_queue_open(&all[i].queue, NULL, &why));
      OK(holdfast_barrier_open(all[i].session, "b", 1, 0, &all[i].barrier, &why));
      OK(holdfast_condition_open(all[i].session, "c", &all[i].condition, &why));
      OK(holdfast_limiter_open(all[i].session, "l", &rule, 1, 0, &all[i].limiter, &why));
      OK(holdfast_close(all[i].session, &why));
    }
    CHECK(pthread_create(&all[i].user, NULL, i % 2 == 1 ? uses_with_a_queue : uses, &all[i]) == 0);
  }
  in_turn("held");
  for (int i = 0; i < count; ++i) {
    OK(holdfast_close(leases[i], &why));
    OK(holdfast_close(locks[i], &why));
    CHECK(pthread_create(&all[i].closer, NULL, closes_session, &all[i]) == 0);
  }
  for (int i = 0; i < count; ++i) CHECK(pthread_join(all[i].user, NULL) == 0);
  for (int i = 0; i < count; ++i) CHECK(!__atomic_load_n(&all[i].is_closed, __ATOMIC_ACQUIRE));
  in_turn("closed");
  for (int i = 0; i < count; ++i) CHECK(pthread_join(all[i].closer, NULL) == 0);
  return 0;
}

struct lock_in_use {
  holdfast_lock* lock;
  pthread_t closers[2], user;
  int closed, refused; /* how many of the closers */
};

/* Makes calls that are refused, until the lock is closed. */
static void* misuses(void* of) {
  struct lock_in_use* const mine = of;
  const holdfast_member twice[2] = {{.lock = mine->lock}, {.lock = mine->lock}};
  holdfast_lock* lock = NULL;
  holdfast_lease* lease = NULL;
  int code = HOLDFAST_UNSUPPORTED;
  while (code == HOLDFAST_UNSUPPORTED) {
    code = holdfast_acquire_shared(mine->lock, NULL, &lease, NULL);
    CHECK(holdfast_acquire(mine->lock, NULL, NULL, NULL) == HOLDFAST_INVALID_ARGUMENT);
    CHECK(holdfast_multi_lock(twice, 2, &lock, NULL) == HOLDFAST_INVALID_ARGUMENT);
    CHECK(holdfast_mutex((void*)mine->lock, "m", NULL, &lock, NULL) == HOLDFAST_INVALID_ARGUMENT);
  }
  CHECK(code == HOLDFAST_INVALID_ARGUMENT);
  return NULL;
}

static void* closes_lock(void* of) {
  struct lock_in_use* const mine = of;
  const int code = holdfast_close(mine->lock, NULL);
  CHECK(code == HOLDFAST_OK || code == HOLDFAST_INVALID_ARGUMENT);
  __atomic_add_fetch(code == HOLDFAST_OK ? &mine->closed : &mine->refused, 1, __ATOMIC_ACQ_REL);
  return NULL;
}

/* The end of each lock waits for the answer of the server. Calls that are refused do not. */
static int a_close_of_idle_locks_in_use(void) {
  enum { count = 16 };
  static struct lock_in_use all[count];
  const holdfast_lock_options stays = {.size = sizeof stays, .linger_us = hour_us};
  OK(holdfast_open(url, &options, &store, &why));
  for (int i = 0; i < count; ++i) {
    char name[8];
    (void)snprintf(name, sizeof name, i == 0 ? "m" : "m%d", i);
    OK(holdfast_mutex(store, name, &stays, &all[i].lock, &why));
    OK(holdfast_release(taken(all[i].lock), NULL, &why));
    CHECK(pthread_create(&all[i].user, NULL, misuses, &all[i]) == 0);
  }
  in_turn("held");
  for (int i = 0; i < 2 * count; ++i)
    CHECK(pthread_create(&all[i / 2].closers[i % 2], NULL, closes_lock, &all[i / 2]) == 0);
  for (int i = 0; i < count; ++i) CHECK(pthread_join(all[i].user, NULL) == 0);
  for (int i = 0; i < count; ++i)
    while (!__atomic_load_n(&all[i].refused, __ATOMIC_ACQUIRE)) (void)sched_yield();
  for (int i = 0; i < count; ++i) CHECK(!__atomic_load_n(&all[i].closed, __ATOMIC_ACQUIRE));
  in_turn("closed");
  for (int i = 0; i < 2 * count; ++i) CHECK(pthread_join(all[i / 2].closers[i % 2], NULL) == 0);
  for (int i = 0; i < count; ++i) CHECK(all[i].closed == 1 && all[i].refused == 1);
  return 0;
}

static void* closes(void* lease) {
  CHECK(holdfast_close(lease, NULL) == HOLDFAST_OK);
  return lease;
}

struct thread_of_a_program {
  holdfast_lease* lease;
  int stat; /* a file that shows what the thread does */
  int is_over;
};

static void begin(struct thread_of_a_program* mine) {
  __atomic_store_n(&mine->stat, open("/proc/thread-self/stat", O_RDONLY), __ATOMIC_RELEASE);
}

static void* ends(void* of) {
  struct thread_of_a_program* mine = of;
  begin(mine);
  holdfast_close_all();
  __atomic_store_n(&mine->is_over, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void* extends(void* of) {
  struct thread_of_a_program* mine = of;
  begin(mine);
  CHECK(holdfast_lease_extend(mine->lease, 0, NULL) == HOLDFAST_OK);
  __atomic_store_n(&mine->is_over, 1, __ATOMIC_RELEASE);
  return NULL;
}

static int is_asleep(int thread_stat) {
  char stat[512] = {0};
  if (pread(thread_stat, stat, sizeof stat - 1, 0) <= 0) return 0;
  const char* const name_ends = strrchr(stat, ')');
  return name_ends != NULL && name_ends[2] == 'S';
}

static void until_it_sleeps(const struct thread_of_a_program* one) {
  while (!__atomic_load_n(&one->is_over, __ATOMIC_ACQUIRE) &&
         !is_asleep(__atomic_load_n(&one->stat, __ATOMIC_ACQUIRE)))
    (void)sched_yield();
  CHECK(!__atomic_load_n(&one->is_over, __ATOMIC_ACQUIRE));
}

/* While the server hangs, the end waits for the other thread. */
static int an_end_while_a_thread_gives_up_its_lease(void* (*gives_up)(void*)) {
  OK(holdfast_open(url, &options, &store, &why));
  holdfast_lease* lease = taken(mutex_of(store, "m"));
  in_turn("held");
  pthread_t threads[2];
  CHECK(pthread_create(&threads[0], NULL, gives_up, lease) == 0);
  while (holdfast_lease_check(lease, NULL) != HOLDFAST_NOT_OWNER) (void)sched_yield();
  struct thread_of_a_program end = {NULL, -1, 0};
  CHECK(pthread_create(&threads[1], NULL, ends, &end) == 0);
  until_it_sleeps(&end);
  in_turn("ends");
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  return 0;
}

/* The same for a thread whose call releases the lease, because another thread closed it. */
static int an_end_while_a_thread_extends_its_closed_lease(void) {
  OK(holdfast_open(url, &options, &store, &why));
  const holdfast_lock_options a_minute = {.size = sizeof a_minute, .lease_ms = 60000};
  holdfast_lock* lock = NULL;
  OK(holdfast_mutex(store, "m", &a_minute, &lock, &why));
  struct thread_of_a_program extension = {taken(lock), -1, 0}, end = {NULL, -1, 0};
  in_turn("held");
  pthread_t threads[2];
  CHECK(pthread_create(&threads[0], NULL, extends, &extension) == 0);
  until_it_sleeps(&extension);
  OK(holdfast_close(extension.lease, &why));
  CHECK(pthread_create(&threads[1], NULL, ends, &end) == 0);
  until_it_sleeps(&end);
  in_turn("ends");
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  return 0;
}

int main(int argc, char** argv) {
  const size_t count = sizeof rules / sizeof *rules;
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (size_t i = 0; i < count; ++i) puts(rules[i].name);
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--layout") == 0) {
    print_layout();
    return 0;
  }
  if (argc != 3 && argc != 5) return 2;
  (void)alarm(50); /* a wait that should have ended must not outlive its test */
  url = argv[1];
  if (strcmp(argv[2], "--release") == 0) return release_while_another_waits();
  if (strcmp(argv[2], "--hangs") == 0) return a_server_that_hangs();
  if (strcmp(argv[2], "--unconfirmed") == 0) return a_close_without_the_answer();
  if (strcmp(argv[2], "--ends-in-release") == 0)
    return an_end_while_a_thread_gives_up_its_lease(releases);
  if (strcmp(argv[2], "--closes-sessions") == 0) return a_close_of_sessions_in_use();
  if (strcmp(argv[2], "--closes-idle-locks") == 0) return a_close_of_idle_locks_in_use();
  if (strcmp(argv[2], "--ends-in-close") == 0)
    return an_end_while_a_thread_gives_up_its_lease(closes);
  if (strcmp(argv[2], "--ends-in-extend") == 0)
    return an_end_while_a_thread_extends_its_closed_lease();
  for (int i = 0; i < 3 && argc == 5; ++i) nodes_urls[i] = i == 0 ? url : argv[2 + i];
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(rules[i].name, argv[2]) != 0) continue;
    options.name_prefix = argv[2];
    OK(holdfast_open(url, &options, &store, &why));
    OK(holdfast_open(url, &options, &other, &why));
    rules[i].holds();
    return 0;
  }
  return 2;
}
