/* member URL NAMES SHARED LOG WORKER LEASE_MS: takes one name after the other, then SHARED as a
 * reader and as a writer, and writes so into LOG.NAME, until LOG.end is there. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <holdfast/holdfast.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static holdfast_error why = {.size = sizeof(holdfast_error)};

static void must(int code) {
  if (code == HOLDFAST_OK) return;
  fprintf(stderr, "%s\n", why.message);
  exit(1);
}

static void note(int log, const char* what, const char* worker, uint64_t fence) {
  char line[128];
  const int length =
      snprintf(line, sizeof line, "%s %s %llu\n", what, worker, (unsigned long long)fence);
  if (write(log, line, (size_t)length) != length) exit(2);
}

struct turn {
  holdfast_lock* lock;
  int log;
  int reads;
};

static int log_of(const char* path, const char* name) {
  char log[512];
  (void)snprintf(log, sizeof log, "%s.%s", path, name);
  return open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
}

/* Of a list "a,b,c" and the shared name, at most `most` turns. */
static int find_turns(holdfast_session* store, char* list, const char* shared, const char* path,
                      struct turn* all, int most) {
  int count = 0;
  for (char* at = strtok(list, ","); at != NULL && count < most - 2; at = strtok(NULL, ",")) {
    all[count] = (struct turn){.log = log_of(path, at)};
    must(holdfast_mutex(store, at, NULL, &all[count].lock, &why));
    ++count;
  }
  for (int reads = 1; reads >= 0; --reads) {
    all[count] = (struct turn){.log = log_of(path, shared), .reads = reads};
    must(holdfast_shared_mutex(store, shared, HOLDFAST_FIFO, NULL, &all[count].lock, &why));
    ++count;
  }
  return count;
}

int main(int argc, char** argv) {
  if (argc != 7) return 3;
  char end[512];
  char stop[512];
  (void)snprintf(end, sizeof end, "%s.end", argv[4]);
  (void)snprintf(stop, sizeof stop, "%s.stop.%s", argv[4], argv[5]);
  const holdfast_session_options options = {.size = sizeof options, .lease_ms = atoi(argv[6])};
  holdfast_session* store = NULL;
  struct turn turns[8];
  must(holdfast_open(argv[1], &options, &store, &why));
  const int count = find_turns(store, argv[2], argv[3], argv[4], turns, 8);
  for (int number = 0; access(end, F_OK) != 0; number = (number + 1) % count) {
    const struct turn* t = &turns[number];
    holdfast_lease* lease = NULL;
    holdfast_lease_info info = {.size = sizeof info};
    if (t->reads) {
      must(holdfast_acquire_shared(t->lock, NULL, &lease, &why));
    } else {
      must(holdfast_acquire(t->lock, NULL, &lease, &why));
    }
    must(holdfast_lease_info_of(lease, &info, &why));
    note(t->log, t->reads ? "read" : "enter", argv[5], info.fence);
    if (access(stop, F_OK) == 0) (void)raise(SIGSTOP);
    note(t->log, t->reads ? "done" : "leave", argv[5], info.fence);
    const int code = holdfast_release(lease, NULL, &why);
    if (code != HOLDFAST_LOST) must(code);
  }
  return 0;
}
