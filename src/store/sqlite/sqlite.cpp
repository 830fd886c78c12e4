#include "store/sqlite/sqlite.hpp"
#include "store/sqlite/moment.hpp"

#include <algorithm>
#include <initializer_list>

#include "base/names.hpp"
#include "store/sqlite/explain.hpp"
#include "store/sqlite/reader.hpp"
#include "store/sqlite/store.hpp"

namespace holdfast::store::sqlite {
namespace {

constexpr std::chrono::hours longest_busy_timeout{1};
constexpr int oldest_sqlite = 3'037'000;  // STRICT tables

/// Keeps a child process away from its parent's objects; lock_file does the rest.
class sqlite_store final : public state_store {
 public:
  explicit sqlite_store(std::unique_ptr<lock_file> file) : file_(std::move(file)) {}

  // A child process destroys nothing of the parent's: it leaves the object as fork() copied it.
  ~sqlite_store() override {
    if (file_->forked()) (void)file_.release();
  }

  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return file_->options().url; }

  status transact(std::string_view name, transition& change) override {
    if (file_->forked()) return explain_forked();
    return file_->transact(name, change);
  }
  std::vector<status> transact(std::span<const step> steps) override {
    if (file_->forked()) return std::vector<status>(steps.size(), explain_forked());
    return file_->transact(steps);
  }
  status transact_together(std::span<const step> steps, const judge& after) override {
    if (file_->forked()) return explain_forked();
    return file_->transact_together(steps, after);
  }
  result<std::vector<entry>> entries() override {
    if (file_->forked()) return explain_forked();
    return file_->entries();
  }
  result<std::vector<entry>> walk(std::string_view behind, std::size_t most) override {
    if (file_->forked()) return explain_forked();
    return file_->walk(behind, most);
  }
  result<store::identity> identify() override {
    if (file_->forked()) return explain_forked();
    return file_->identify();
  }
  result<store::facts> facts() override {
    const auto& o = file_->options();
    return store::facts{{{}, "sqlite_version", sqlite3_libversion()},
                        {{}, "synchronous", o.synchronous},
                        {{}, "network", o.network}};
  }
  result<moment> time() override { return read_moment(); }
  bool departed(std::string_view peer) override {
    return !file_->forked() && file_->inbox().departed(peer);
  }
  bool tell(const notification& to) override { return file_->forked() || file_->inbox().send(to); }
  store::inbox& inbox() noexcept override { return file_->inbox(); }

 private:
  static constexpr capabilities can_{.sees_death = true};
  std::unique_ptr<lock_file> file_;
};

status check_word(const char* option, const std::string& value,
                  std::initializer_list<std::string_view> known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return done{};
  std::string what = std::string{option} + "='" + base::shortened(value, 80) + "' is not one of";
  for (const auto word : known) what.append(word == *known.begin() ? " " : ", ").append(word);
  return failure{errc::invalid_argument, what};
}

status check(const sqlite_options& options) {
  if (auto good = check_word("synchronous", options.synchronous, {"off", "normal", "full"});
      !good) {
    return good;
  }
  if (auto good = check_word("network", options.network, {"refuse", "allow"}); !good) return good;
  if (auto good = check_word("access", options.access, {"read", "write"}); !good) return good;
  if (options.busy_timeout.count() < 0 || options.busy_timeout > longest_busy_timeout) {
    return failure{errc::invalid_argument, "busy_timeout is from 0 ms to one hour"};
  }
  if (sqlite3_threadsafe() == 0 || sqlite3_libversion_number() < oldest_sqlite) {
    return failure{errc::unsupported, std::string{"SQLite "} + sqlite3_libversion() +
                                          " is older than 3.37 or was built without threads; "
                                          "link another"};
  }
  return done{};
}

}  // namespace

result<std::unique_ptr<state_store>> open_sqlite(sqlite_options options) {
  if (auto good = check(options); !good) return good.error();
  if (options.url.empty()) options.url = "sqlite:" + options.path;
  if (options.access == "read") return open_to_read(std::move(options));
  auto file = std::make_unique<lock_file>(std::move(options));
  if (auto opened = file->open(); !opened) return opened.error();
  return std::unique_ptr<state_store>{std::make_unique<sqlite_store>(std::move(file))};
}

}  // namespace holdfast::store::sqlite
