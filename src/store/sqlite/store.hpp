#pragma once

#include <array>
#include <exception>
#include <holdfast/store/state_store.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "store/sqlite/connection.hpp"
#include "store/sqlite/fifo_inbox.hpp"
#include "store/sqlite/forkable.hpp"
#include "store/sqlite/options.hpp"
#include "store/sqlite/writer_queue.hpp"

namespace holdfast::store::sqlite {

/// One session on one file: a connection that all threads share under a mutex, and an inbox.
class lock_file final : public forkable {
 public:
  explicit lock_file(sqlite_options options);
  ~lock_file() override;
  status open();

  const sqlite_options& options() const noexcept { return options_; }
  status transact(std::string_view name, transition& change);
  std::vector<status> transact(std::span<const state_store::step> steps);
  status transact_together(std::span<const state_store::step> steps,
                           const state_store::judge& after);
  result<std::vector<state_store::entry>> entries();
  result<std::vector<state_store::entry>> walk(std::string_view behind, std::size_t most);
  /// Identifies the file, whatever its path: not by its content, which a copy would have, too.
  result<store::identity> identify() const;
  fifo_inbox& inbox() noexcept { return *inbox_; }
  void abandon() noexcept override;

 private:
  /// What the SQL functions need to know about the step in progress.
  struct step_in_progress {
    transition* change = nullptr;
    bool row_seen = false;
    const std::string* next = nullptr;  ///< the record to write; null: none
    bool stays_free = false;            ///< nothing to write, and the name is unused
    bool too_long = false;              ///< this record; other names are not affected
    std::exception_ptr thrown;
  };

  status open_connection();
  status open_beside();
  status set_up_tables();
  status prepare_statements();
  status open_inbox();
  status add_functions();
  void finalize() noexcept;
  static void decide(sqlite3_context* context, int, sqlite3_value** values) noexcept;
  static void next_record(sqlite3_context* context, int, sqlite3_value**) noexcept;

  status check_still_there();
  status step(std::string_view name, transition& change);
  status try_step(sqlite3_stmt* how, std::string_view name, transition& change,
                  std::string_view tried);
  result<bool> asked(std::string_view name, transition& change);
  bool all_asked(std::span<const state_store::step> steps);
  std::vector<status> step_all(std::span<const state_store::step> steps);
  status step_together(std::span<const state_store::step> steps, const state_store::judge& after);
  void note_free(std::string_view name);
  void sweep_if_many() noexcept;
  void sweep() noexcept;
  status remove_free();
  failure failed(sqlite3_stmt* how, int code, std::string_view tried);

  const sqlite_options options_;
  std::string file_;
  peer self_;
  connection db_;
  statement update_;
  statement insert_;
  statement read_;
  statement read_none_;
  statement remove_;
  sidecar beside_;
  std::optional<writer_queue> door_;
  std::unique_ptr<fifo_inbox> inbox_;
  step_in_progress current_;
  std::int64_t looked_at_path_ = 0;
  std::string last_free_;
  std::unordered_set<std::string> free_;
};

}  // namespace holdfast::store::sqlite
