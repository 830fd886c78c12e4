#pragma once

#include <map>
#include <memory>
#include <vector>

#include "simulation/server.hpp"

/// Servers to which the library's own drivers connect, each over a connection of its own.
namespace simulation {

class dialled_server;

/// The client's end of such a connection.
class dialled {
 public:
  dialled(dialled_server& to, server& of, std::shared_ptr<connection> way);
  virtual ~dialled();
  dialled(const dialled&) = delete;

  /// Whether the server has confirmed the connection.
  bool connected() const noexcept { return greeting_->over && !greeting_->failed; }
  bool refused() const noexcept { return greeting_->over && greeting_->failed; }
  bool broken() const noexcept { return way_->number != as_connected_; }
  /// A thread tried to send something over the connection, which was already broken.
  void found_broken();
  int number() const noexcept { return number_; }

  /// The fiber begins, and ends, its wait for bytes.
  void wait_here(fiber& who);
  void leave_here(const fiber& who) noexcept;
  /// Waits until the exchange is over, at most until that time. False: it failed or was not over in
  /// time.
  bool wait_for(const exchange& e, nanos until);
  bool wait_until_connected(nanos until) { return wait_for(*greeting_, until); }

 protected:
  void begin(const std::shared_ptr<exchange>& e);
  void wake();
  bool traced() const noexcept;
  nanos now() const noexcept { return of_.world_.now(); }
  /// The time of the last byte sent or received.
  nanos used_at() const noexcept { return used_at_; }
  const process& user() const noexcept { return *way_->of; }

 private:
  friend class dialled_server;

  dialled_server& to_;
  server& of_;
  const std::shared_ptr<connection> way_;
  const std::shared_ptr<exchange> greeting_;
  const std::uint64_t as_connected_;
  int number_ = 0;
  nanos used_at_;
  std::vector<fiber*> readers_;
};

/// The server's end of such connections.
class dialled_server : public back_end {
 protected:
  explicit dialled_server(server& of) : of_(of) {}

  /// Whether a connection last used at `used` was idle at `when`, even if the thread of that
  /// process that had to set it aside was late.
  bool long_before(nanos used, nanos when, const process& by) const noexcept;
  void violated(const char* rule, std::string what) const;
  /// Whether a request may take any idle connection.
  virtual bool has_a_pool() const noexcept { return true; }

  /// Connects a new client over a new way.
  template <class Client>
  std::shared_ptr<Client> dial(process& of) {
    auto c = std::make_shared<Client>(*this, of_, new_way(of));
    connect(c);
    return c;
  }
  /// Opens a driver in that process, and repeats that while the server is away.
  template <class Open>
  auto open_until_it_works(process& of, Open open) {
    know(of);
    for (;;) {
      if (auto made = open()) return std::move(*made);
      pause();
    }
  }
  static const std::shared_ptr<connection>& way_of(const dialled& c) noexcept { return c.way_; }
  static void wake(dialled& c) { c.wake(); }

  /// A client has connected.
  virtual void greet(const std::shared_ptr<dialled>& c) = 0;
  /// A client has gone.
  virtual void leave(int number) = 0;

  server& of_;

 private:
  friend class dialled;
  std::shared_ptr<connection> new_way(process& of);
  void know(process& of);
  void pause();
  void connect(const std::shared_ptr<dialled>& c);

  struct use {
    nanos at = 0;
    int number = 0;
  };

  std::map<const process*, std::shared_ptr<connection>> machines_;  ///< their ways to this server
  /// The broken connection that each thread has found, if the thread has done nothing since.
  std::map<const fiber*, use> found_broken_;
  int connections_made_ = 0;
};

}  // namespace simulation
