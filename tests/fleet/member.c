/* member URL NAMES LOG WORKER LEASE_MS: takes one name after the other, and writes so into
 * LOG.NAME, until LOG.end is there. */
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

struct name {
  holdfast_lock* lock;
  int log;
};

/* Of a list "a,b,c", at most `most` of them. */
static int find_names(holdfast_session* store, char* list, const char* path, struct name* all,
                      int most) {
  int count = 0;
  for (char* at = strtok(list, ","); at != NULL && count < most; at = strtok(NULL, ",")) {
    char log[512];
    (void)snprintf(log, sizeof log, "%s.%s", path, at);
    all[count].log = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    must(holdfast_mutex(store, at, NULL, &all[count].lock, &why));
    ++count;
  }
  return count;
}

int main(int argc, char** argv) {
  if (argc != 6) return 3;
  char end[512];
  char stop[512];
  (void)snprintf(end, sizeof end, "%s.end", argv[3]);
  (void)snprintf(stop, sizeof stop, "%s.stop.%s", argv[3], argv[4]);
  const holdfast_session_options options = {.size = sizeof options, .lease_ms = atoi(argv[5])};
  holdfast_session* store = NULL;
  struct name names[8];
  must(holdfast_open(argv[1], &options, &store, &why));
  const int count = find_names(store, argv[2], argv[3], names, 8);
  for (int turn = 0; access(end, F_OK) != 0; turn = (turn + 1) % count) {
    const struct name* n = &names[turn];
    holdfast_lease* lease = NULL;
    holdfast_lease_info info = {.size = sizeof info};
    must(holdfast_acquire(n->lock, NULL, &lease, &why));
    must(holdfast_lease_info_of(lease, &info, &why));
    note(n->log, "enter", argv[4], info.fence);
    if (access(stop, F_OK) == 0) (void)raise(SIGSTOP);
    note(n->log, "leave", argv[4], info.fence);
    const int code = holdfast_release(lease, NULL, &why);
    if (code != HOLDFAST_LOST) must(code);
  }
  return 0;
}
