#include <algorithm>
#include <array>

#include "bench/subject.hpp"

namespace bench {

std::span<const subject_kind> all_subjects() {
  static const std::array all{
      holdfast_subject,
      fair_mutex_baseline,
      metrics_baseline,
      std_baseline,
      flock_baseline,
      pthread_baseline,
      sqlite_row_baseline,
      sqlite_transaction_baseline,
      memcached_add_baseline,
#ifdef HOLDFAST_BENCH_REDIS
      redis_loop_baseline,
      redis_push_baseline,
#endif
#ifdef HOLDFAST_BENCH_ETCD
      etcd_recipe_baseline,
#endif
#ifdef HOLDFAST_BENCH_ZOOKEEPER
      zookeeper_recipe_baseline,
#endif
#ifdef HOLDFAST_BENCH_POSTGRES
      postgres_row_baseline,
      listen_notify_baseline,
      postgres_advisory_baseline,
#endif
#ifdef HOLDFAST_BENCH_MARIADB
      mariadb_row_baseline,
      mariadb_user_lock_baseline,
#endif
  };
  return all;
}

const subject_kind* find_subject(std::string_view name) {
  const auto all = all_subjects();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& k) { return k.name == name; });
  return at == all.end() ? nullptr : &*at;
}

#ifndef HOLDFAST_BENCH_REDIS
std::int64_t store_cpu_ns(std::string_view) { return 0; }
#endif

std::string_view scheme_of(std::string_view url) { return url.substr(0, url.find(':')); }

}  // namespace bench
