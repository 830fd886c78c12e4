#pragma once

#include <list>
#include <string>
#include <vector>

#include "tool/faultproxy/endpoint.hpp"
#include "tool/faultproxy/stream.hpp"

struct pollfd;

namespace holdfast::faultproxy {

/// Stands between clients and a server, forwards every byte, and does on demand what networks do:
/// slow down, lose, hold back, cut. It knows nothing of the protocol.
///
/// No thread of its own and not thread-safe: its owner calls turn() again and again, and
/// changes the faults in between.
class relay {
 public:
  /// Listens at once; port 0 takes a free one. Throws std::exception with what is wrong.
  relay(const endpoint& listen, const endpoint& to);
  ~relay();
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  std::uint16_t port() const { return port_of(listening_); }

  // ---- until heal(), for connections that are there and those to come
  void set_latency(std::chrono::microseconds each_way) { faults_.latency = each_way; }
  void set_rate(std::size_t bytes_per_second) { faults_.bytes_per_second = bytes_per_second; }
  void stall(way w) { faults_[w].stalled = true; }
  void swallow(way w) { faults_[w].swallowing = true; }
  void refuse() { faults_.refusing = true; }
  /// Everything is well again. Connections that lost bytes are reset: their streams are torn.
  void heal();

  // ---- once
  void cut();    ///< closes all connections, as a server does
  void reset();  ///< the same with RST, as a crashed machine does when it is back
  /// The connections that there are lose everything from now on, and nobody is told; new ones work.
  void half_open();
  /// The next so many bytes pass, whichever connections they are on; then the connection that the
  /// last of them was on is cut. 0 down: the server does what it is told, and its answer is lost.
  void cut_after(way w, std::size_t bytes) { faults_[w].cut_after = bytes; }

  // ---- from now on
  /// New connections go to another server; those that there are stay.
  void lead_to(const endpoint& to);

  struct counts {
    std::size_t accepted = 0;  ///< connections ever made
    std::size_t open = 0;
    std::size_t cut = 0;  ///< ended by cut(), reset(), heal() and cut_after()
    std::size_t up = 0;   ///< bytes passed on
    std::size_t down = 0;
    std::size_t held = 0;         ///< bytes of the server that have come, and were not passed on
    std::size_t round_trips = 0;  ///< how often a client spoke after it was answered, or first
  };
  counts count() const;

  /// Moves what there is to move, waiting for it; true if it was `wake_fd` that became readable
  /// (-1: nothing but the network ends the wait).
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
  counts gone_;  ///< what connections that have ended had counted
};

}  // namespace holdfast::faultproxy
