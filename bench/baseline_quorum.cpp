#include "bench/several.hpp"

#ifdef HOLDFAST_BENCH_REDIS
#include <memory>

#include "bench/hiredis.hpp"
#endif

namespace bench {

#ifdef HOLDFAST_BENCH_REDIS
namespace {

class raw_nodes {
 public:
  explicit raw_nodes(const std::vector<std::string>& urls) {
    for (const auto& url : urls) {
      nodes_.push_back(std::make_unique<hiredis>(url));
      sha_ = nodes_.back()->ask("SCRIPT LOAD %s", compare_and_delete)->str;
    }
  }
  void lock() {
    for (const auto& n : nodes_) n->send("SET bench-raw token NX PX 30000");
    read_all();
  }
  void unlock() {
    for (const auto& n : nodes_) n->send("EVALSHA %s 1 bench-raw token", sha_.c_str());
    read_all();
  }

 private:
  static constexpr const char* compare_and_delete =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
      "return 0";
  void read_all() {
    for (const auto& n : nodes_) (void)n->next();
  }

  std::vector<std::unique_ptr<hiredis>> nodes_;
  std::string sha_;
};

}  // namespace

std::function<void()> raw_quorum(const std::vector<std::string>& urls) {
  for (const auto& url : urls) {
    if (scheme_of(url) != "redis" && scheme_of(url) != "redis+unix") return {};
  }
  return [nodes = std::make_shared<raw_nodes>(urls)] { nodes->lock(), nodes->unlock(); };
}
#else
std::function<void()> raw_quorum(const std::vector<std::string>&) { return {}; }
#endif

}  // namespace bench
