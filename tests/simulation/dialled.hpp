#pragma once

#include <map>
#include <memory>
#include <vector>

#include "simulation/server.hpp"

/// Servers that the library's own drivers connect to, each connection by itself.
namespace simulation {

class dialled_server;

/// The client's end of such a connection.
class dialled {
 public:
  dialled(dialled_server& to, server& of, std::shared_ptr<connection> way);
  virtual ~dialled();
  dialled(const dialled&) = delete;

  /// Whether the server has answered that it is connected.
  bool connected() const noexcept { return greeting_->over && !greeting_->failed; }
  bool refused() const noexcept { return greeting_->over && greeting_->failed; }
  bool broken() const noexcept { return way_->number != as_connected_; }
  /// A thread wanted to send something over it, and it was broken already.
  void found_broken();
  int number() const noexcept { return number_; }

  /// The fiber begins to wait for bytes, and ends its wait.
  void wait_here(fiber& who);
  void leave_here(const fiber& who) noexcept;
  /// Until the exchange is over, or that time. False: nothing came of it.
  bool wait_for(const exchange& e, nanos until);
  bool wait_until_connected(nanos until) { return wait_for(*greeting_, until); }

 protected:
  void begin(const std::shared_ptr<exchange>& e);
  void wake();
  bool traced() const noexcept;
  nanos now() const noexcept { return of_.world_.now(); }
  /// When something was sent or arrived last.
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

/// The server's side of them.
class dialled_server : public back_end {
 protected:
  explicit dialled_server(server& of) : of_(of) {}

  /// Whether a connection that was used last at that time was idle at the later one, whatever
  /// thread of that process was late to put it aside.
  bool long_before(nanos used, nanos when, const process& by) const noexcept;
  void violated(const char* rule, std::string what) const;
  /// Whether a request may take any connection that is idle.
  virtual bool has_a_pool() const noexcept { return true; }

  /// Connects a client that was made over a new way.
  template <class Client>
  std::shared_ptr<Client> dial(process& of) {
    auto c = std::make_shared<Client>(*this, of_, new_way(of));
    connect(c);
    return c;
  }
  /// Opens a driver in that process: it does not open where the server is away.
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

  /// It is connected …
  virtual void greet(const std::shared_ptr<dialled>& c) = 0;
  /// … and its client has gone.
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

  std::map<const process*, std::shared_ptr<connection>> machines_;  ///< their ways here
  /// The broken connection that a thread has found, if it has done nothing since.
  std::map<const fiber*, use> found_broken_;
  int connections_made_ = 0;
};

}  // namespace simulation
