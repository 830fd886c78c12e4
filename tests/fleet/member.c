/* member URL NAME LOG WORKER LEASE_MS: takes the lock again and again, and writes so, until LOG.end
 * is there. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <holdfast/holdfast.h>
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

int main(int argc, char** argv) {
  if (argc != 6) return 3;
  char end[512];
  (void)snprintf(end, sizeof end, "%s.end", argv[3]);
  const int log = open(argv[3], O_WRONLY | O_CREAT | O_APPEND, 0644);
  const holdfast_session_options options = {.size = sizeof options, .lease_ms = atoi(argv[5])};
  holdfast_session* store = NULL;
  holdfast_lock* lock = NULL;
  must(holdfast_open(argv[1], &options, &store, &why));
  must(holdfast_mutex(store, argv[2], NULL, &lock, &why));
  while (access(end, F_OK) != 0) {
    holdfast_lease* lease = NULL;
    holdfast_lease_info info = {.size = sizeof info};
    must(holdfast_acquire(lock, NULL, &lease, &why));
    must(holdfast_lease_info_of(lease, &info, &why));
    note(log, "enter", argv[4], info.fence);
    note(log, "leave", argv[4], info.fence);
    const int code = holdfast_release(lease, NULL, &why);
    if (code != HOLDFAST_LOST) must(code);
  }
  return 0;
}
