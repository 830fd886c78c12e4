#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "simulation/dialled.hpp"

/// A simulated memcached that receives the driver's own bytes.
namespace simulation {

/// Bytes that were sent in one piece.
struct bytes_exchange : exchange {
  std::string bytes{};
  std::string reply{};
  std::string arrived{};  ///< the part of the reply that arrived before the connection ended
};

/// The client's end of a connection, under the driver's socket.
class memcached_client final : public dialled {
 public:
  memcached_client(dialled_server& to, server& of, std::shared_ptr<connection> way);
  ~memcached_client() override;

  void send(std::string bytes);
  /// Whether bytes have arrived that the driver has not read.
  bool has_input() const noexcept;
  /// Reads the bytes that have arrived, at most `most` of them.
  std::string take(std::size_t most);

 private:
  class memcached_server& to_;
  std::deque<std::shared_ptr<bytes_exchange>> sent_;
  std::string incoming_;
  std::uint64_t pieces_ = 0;  ///< the number of pieces sent
  nanos sent_at_ = 0;         ///< the time of the last one
  nanos in_use_since_;        ///< or earlier
};

class memcached_server final : public dialled_server {
 public:
  explicit memcached_server(server& of);
  ~memcached_server() override;

  std::unique_ptr<holdfast::store::session_store> connect(process& of) override;
  std::vector<std::string> names() override;
  std::string describe(std::string_view name) override;
  std::vector<user> users(std::string_view name) override;
  bool forget() override { return true; }  // as whenever it stops
  void stopped() override;
  void process_died(const process& of) override;
  std::string lose(std::uint64_t which) override;

  /// The server that the driver reaches under that host's name.
  static memcached_server* named(const std::string& host);
  std::shared_ptr<memcached_client> open(process& of) { return dial<memcached_client>(of); }

 private:
  friend class memcached_client;
  struct item {
    std::string value;
    std::uint64_t unique = 0;
    std::int64_t ends_at = 0;  ///< a tick of its clock
  };
  struct talk;
  struct meta;

  nanos command_timeout() const noexcept { return of_.is_.command_timeout; }
  /// A request is sent over a connection that was last used at `before`.
  void is_used(const process& by, nanos before) const;
  /// A connection in use since then, or longer, did not answer in time.
  void fell_silent(const process& to, nanos since) {
    silent_since_[&to] = {of_.world_.now(), since};
  }
  void greet(const std::shared_ptr<dialled>& c) override;
  void leave(int number) override;
  void take(int number, const std::shared_ptr<bytes_exchange>& e);
  void go_on(const std::shared_ptr<talk>& t);
  void go_on_later(const std::shared_ptr<talk>& t, nanos after);
  void do_next(const std::shared_ptr<talk>& t);
  void cut_off(const std::shared_ptr<talk>& t);
  void end(const std::shared_ptr<talk>& t);

  std::string carry_out(std::string_view& bytes);
  std::string stats();
  std::string write(meta& m, std::string_view line, std::string_view& bytes);
  std::string set(const meta& m, std::string value);
  std::string get(const meta& m);
  std::string remove(const meta& m);
  std::string count(const meta& m);
  item* find(std::string_view key);
  void put(item& into, std::string value, const meta& m);
  std::int64_t tick();

  std::map<std::string, item, std::less<>> items_;
  std::map<int, std::shared_ptr<talk>> talks_;
  struct silence {
    nanos noticed = 0;
    nanos since = 0;
  };
  std::map<const process*, silence> silent_since_;
  std::uint64_t last_unique_ = 0;
  std::int64_t tick_ = 0;
  std::int64_t late_ = 0;  ///< the tick that may be late
  std::int64_t late_until_ = 0;
  std::int64_t began_ = 0;
  std::int64_t phase_ = 0;  ///< the offset at which its seconds begin
  bool same_pid_ = false;   ///< as in a container
  std::uint64_t lives_ = 1;
};

}  // namespace simulation
