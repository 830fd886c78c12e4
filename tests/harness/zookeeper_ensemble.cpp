#include "harness/zookeeper_ensemble.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "harness/eventually.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"

namespace harness {

namespace {

constexpr const char* classes =
    "/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar:/usr/share/java/"
    "slf4j-nop.jar";

pid_t run_java(const std::string& config, const std::string& log) {
  const char* const words[] = {"java",
                               "-XX:TieredStopAtLevel=1",
                               "-XX:+UseSerialGC",
                               "-Xmx192m",
                               "-Dzookeeper.forceSync=no",
                               "-Dznode.container.checkIntervalMs=1000",
                               "-cp",
                               classes,
                               "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                               config.c_str(),
                               nullptr};
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::execvp(words[0], const_cast<char* const*>(words));
  ::_exit(127);
}

}  // namespace

zookeeper_ensemble::zookeeper_ensemble(int servers) {
  members_.resize(static_cast<std::size_t>(servers));
  // Somebody else may take a port before the server does.
  for (int attempt = 0; attempt < 5; ++attempt) {
    for (auto& m : members_) {
      m.port = free_port();
      m.quorum_port = free_port();
      m.election_port = free_port();
    }
    write_configs();
    if (starts()) return;
  }
  throw std::runtime_error(
      "the ZooKeeper servers do not start; are zookeeper and a JRE installed?");
}

zookeeper_ensemble::~zookeeper_ensemble() {
  for (int i = 0; i < size(); ++i) kill(i);
}

void zookeeper_ensemble::write_configs() {
  std::string all;
  for (std::size_t i = 0; size() > 1 && i < members_.size(); ++i) {
    const auto& m = members_[i];
    all += "server." + std::to_string(i + 1) + "=127.0.0.1:" + std::to_string(m.quorum_port) + ":" +
           std::to_string(m.election_port) + "\n";
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::string data = dir_.file("data" + std::to_string(i));
    std::filesystem::remove_all(data);
    std::filesystem::create_directories(data);
    std::ofstream(data + "/myid") << i + 1;
    members_[i].config = data + ".cfg";
    std::ofstream(members_[i].config)
        << "tickTime=200\ninitLimit=50\nsyncLimit=10\nminSessionTimeout=200\n"
           "maxSessionTimeout=86400000\nmaxClientCnxns=0\nadmin.enableServer=false\n"
           "4lw.commands.whitelist=*\nclientPortAddress=127.0.0.1\nclientPort="
        << members_[i].port << "\ndataDir=" << data << "\n"
        << all;
  }
}

bool zookeeper_ensemble::starts() {
  for (int i = 0; i < size(); ++i) start(i);
  bool failed = false;
  eventually("ZooKeeper to answer", [&] {
    for (auto& m : members_) {
      if (m.pid > 0 && ::waitpid(m.pid, nullptr, WNOHANG) == m.pid) m.pid = -1, failed = true;
    }
    return failed || leader() >= 0;
  });
  if (!failed) until_whole();
  for (int i = 0; failed && i < size(); ++i) kill(i);
  return !failed;
}

int zookeeper_ensemble::port(int server) const {
  return members_.at(static_cast<std::size_t>(server)).port;
}

std::string zookeeper_ensemble::hosts() const {
  std::string all;
  for (const auto& m : members_) {
    all += (all.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(m.port);
  }
  return all;
}

std::string zookeeper_ensemble::ask(int server, const std::string& word) const try {
  tcp_client client(port(server));
  client.say(word);
  return client.hear_all();
} catch (const std::exception&) {
  return {};
}

long zookeeper_ensemble::counted(int server, const std::string& key) const {
  const std::string all = ask(server, "mntr");
  const auto at = all.find("zk_" + key + "\t");
  return at == all.npos ? 0 : std::stol(all.substr(at + key.size() + 4));
}

int zookeeper_ensemble::leader() const {
  for (int i = 0; i < size(); ++i) {
    const auto& m = members_[static_cast<std::size_t>(i)];
    const auto said = m.pid > 0 ? ask(i, "srvr") : std::string();
    if (said.find("Mode: leader") != said.npos || said.find("Mode: standalone") != said.npos)
      return i;
  }
  return -1;
}

void zookeeper_ensemble::until_whole() const {
  eventually("all ZooKeeper servers to serve", [&] {
    for (int i = 0; i < size(); ++i) {
      if (members_[static_cast<std::size_t>(i)].pid < 0) continue;
      if (ask(i, "srvr").find("Mode: ") == std::string::npos) return false;
    }
    return leader() >= 0;
  });
}

void zookeeper_ensemble::kill(int server) {
  auto& m = members_.at(static_cast<std::size_t>(server));
  if (m.pid < 0) return;
  ::kill(m.pid, SIGKILL);
  ::waitpid(m.pid, nullptr, 0);
  m.pid = -1;
}

void zookeeper_ensemble::start(int server) {
  auto& m = members_.at(static_cast<std::size_t>(server));
  m.pid = run_java(m.config, m.config + ".log");
}

void zookeeper_ensemble::stop(int server) {
  ::kill(members_.at(static_cast<std::size_t>(server)).pid, SIGSTOP);
}

void zookeeper_ensemble::resume(int server) {
  ::kill(members_.at(static_cast<std::size_t>(server)).pid, SIGCONT);
}

}  // namespace harness
