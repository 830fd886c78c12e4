#include "harness/server_group.hpp"

#include <filesystem>
#include <signal.h>

#include <cstdlib>
#include <stdexcept>

#include "harness/eventually.hpp"
#include "harness/redis_server.hpp"

namespace harness {

server_group::server_group(std::string scheme, int servers, const std::string& folder)
    : scheme_(std::move(scheme)), dir_(folder), members_(static_cast<std::size_t>(servers)) {}

std::string server_group::hosts() const {
  std::string all;
  for (const auto& m : members_) {
    all += (all.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(of_clients(m));
  }
  return all;
}

void server_group::choose(int attempt) {
  int number = 0;
  for (auto& m : members_) {
    m.port = free_port();
    m.peer_port = free_port();
    m.third_port = free_port();
    m.data = dir_.file("data" + std::to_string(attempt) + "-" + std::to_string(number++));
  }
  prepare();
}

// Another process may take a port before the server does.
void server_group::begin(const std::string& package) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    choose(attempt);
    if (!starts(package)) continue;
    if (std::getenv("HOLDFAST_DELAYS") == nullptr) return;
    for (auto& m : members_) m.slow_network = std::make_unique<fault_proxy>(m.port);
    return;
  }
  throw std::runtime_error("the servers do not start; is " + package + " installed? " +
                           last_words(members_.front().data + ".log"));
}

bool server_group::starts(const std::string& package) {
  for (int i = 0; i < size(); ++i) start(i);
  bool failed = false;
  eventually(package + " to answer", [&] {
    for (auto& m : members_) failed |= !m.process.runs();
    return failed || leader() >= 0;
  });
  if (!failed) until_whole();
  for (int i = 0; failed && i < size(); ++i) kill(i);
  return !failed;
}

void server_group::start(int server) {
  process(server).start(command(server), {},
                        members_[static_cast<std::size_t>(server)].data + ".log", {}, SIGKILL);
}

void server_group::save_data(int server) const {
  const std::string& data = members().at(static_cast<std::size_t>(server)).data;
  std::filesystem::copy(data, data + "-saved", std::filesystem::copy_options::recursive);
}

void server_group::restore_data(int server) const {
  const std::string& data = members().at(static_cast<std::size_t>(server)).data;
  std::filesystem::remove_all(data);
  std::filesystem::rename(data + "-saved", data);
}

}  // namespace harness
