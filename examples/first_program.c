/* The C interface: a lock, its fence, and what a second program sees.  cc first_program.c $(pkg-config --cflags --libs holdfast-c) */
#include <holdfast/holdfast.h>
#include <stdio.h>
#include <stdlib.h>

static holdfast_error why = {.size = sizeof(holdfast_error)};

static void must(int code) {
  if (code == HOLDFAST_OK) return;
  fprintf(stderr, "%s\n", why.message);
  exit(1);
}

int main(void) {
  // #region lock
  holdfast_session *store = NULL;
  holdfast_lock *order = NULL;
  holdfast_lease *lease = NULL;
  must(holdfast_open("sqlite:locks.db", NULL, &store, &why));
  must(holdfast_mutex(store, "order:1000", NULL, &order, &why));

  const holdfast_wait five_seconds = {.size = sizeof five_seconds, .timeout_ns = 5000000000};
  must(holdfast_acquire(order, &five_seconds, &lease, &why));

  holdfast_lease_info info = {.size = sizeof info};
  must(holdfast_lease_info_of(lease, &info, &why));
  printf("update stock ... where fence <= %llu\n", (unsigned long long)info.fence);

  must(holdfast_release(lease, NULL, &why)); /* HOLDFAST_LOST: it ended before the work did */
  // #endregion

  must(holdfast_close(order, &why));
  must(holdfast_close(store, &why));
  return 0;
}
