#pragma once

#include <list>
#include <string>
#include <vector>

#include "tool/faultproxy/endpoint.hpp"
#include "tool/faultproxy/stream.hpp"

struct pollfd;

namespace holdfast::faultproxy {

/// Sits between clients and a server, forwards every byte, and causes network faults on demand:
/// delays, losses, stalls, cuts. It knows nothing of the protocol.
///
/// It has no thread of its own and is not thread-safe: its owner calls turn() again and again, and
/// changes the faults in between.
class relay {
 public:
  /// Listens at once; port 0 takes a free one. Throws std::exception with the reason.
  relay(const endpoint& listen, const endpoint& to);
  ~relay();
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  std::uint16_t port() const { return port_of(listening_); }

  // ---- until heal(), for present and future connections
  void set_latency(std::chrono::microseconds each_way) { faults_.latency = each_way; }
  void set_rate(std::size_t bytes_per_second) { faults_.bytes_per_second = bytes_per_second; }
  void stall(way w) { faults_[w].stalled = true; }
  void swallow(way w) { faults_[w].swallowing = true; }
  void refuse() { faults_.refusing = true; }
  /// Ends all faults. Connections that lost bytes are reset: their streams are incomplete.
  void heal();

  // ---- once
  void cut();    ///< closes all connections, as a server does
  void reset();  ///< the same with RST, as a crashed machine does when it is back
  /// The present connections lose everything from now on, and neither side notices; new ones work.
  void half_open();
  /// This many further bytes pass, on whichever connections; then the connection of the last of
  /// them is cut. 0 down: the server carries out the request, and its answer is lost.
  void cut_after(way w, std::size_t bytes) { faults_[w].cut_after = bytes; }

  // ---- from now on
  //
  // New connections go to another server; the present ones stay.
  void lead_to(const endpoint& to);

  struct counts {
    std::size_t accepted = 0;  ///< connections ever made
    std::size_t open = 0;
    std::size_t cut = 0;  ///< ended by cut(), reset(), heal() and cut_after()
    std::size_t up = 0;   ///< bytes passed on
    std::size_t down = 0;
    std::size_t held = 0;         ///< bytes that have come from the server and were not passed on
    std::size_t round_trips = 0;  ///< how often a client sent first, or after an answer
  };
  counts count() const;

  /// Moves the available bytes, and waits for some; true if `wake_fd` became readable (-1: only the
  /// network ends the wait).
  bool turn(int wake_fd);

 private:
  struct connection {
    int client = -1;
    int server = -1;
    bool connected = false;
    bool over = false;
    bool half_open = false;
    bool answered = true;
    std::size_t round_trips = 0;
    stream up;
    stream down;
  };

  void accept_all();
  void begin(int client);
  void serve(connection& c, short from_client, short from_server, moment now);
  void write_both(connection& c, moment now);
  static bool finish_connecting(connection& c);
  static void end(connection& c, bool with_reset);
  void cut_one(connection& c, bool with_reset);
  void end_all(bool with_reset);
  void forget_ended();
  void add_to(std::vector<pollfd>& all, const connection& c) const;
  moment next_due() const;
  const faults& of(const connection& c) const noexcept { return c.half_open ? silence_ : faults_; }
  faults& of(connection& c) noexcept { return c.half_open ? silence_ : faults_; }

  address to_;
  const int listening_;
  faults faults_;
  faults silence_;  ///< of half-open connections
  std::list<connection> connections_;
  counts gone_;  ///< the counts of connections that have ended
};

}  // namespace holdfast::faultproxy
