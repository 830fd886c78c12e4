#include "harness/etcd_cluster.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "harness/eventually.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"

namespace harness {

namespace {

// Each agreement waits for the disks of a majority.
std::filesystem::path fastest_folder() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

std::string address(int port) { return "127.0.0.1:" + std::to_string(port); }

pid_t run(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
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
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

long value_of(const std::string& metrics, const std::string& name) {
  const auto at = metrics.find("\n" + name + " ");
  return at == metrics.npos ? 0
                            : static_cast<long>(std::stod(metrics.substr(at + name.size() + 2)));
}

}  // namespace

etcd_cluster::etcd_cluster(int servers, std::vector<std::string> arguments)
    : dir_(fastest_folder()), arguments_(std::move(arguments)) {
  members_.resize(static_cast<std::size_t>(servers));
  // Somebody else may take a port before the server does.
  for (int attempt = 0; attempt < 5; ++attempt) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      auto& m = members_[i];
      m.port = free_port();
      m.peer_port = free_port();
      m.metrics_port = free_port();
      m.data = dir_.file("data" + std::to_string(attempt) + "-" + std::to_string(i));
    }
    if (starts()) return;
  }
  throw std::runtime_error("the etcd servers do not start; is etcd-server installed?");
}

etcd_cluster::~etcd_cluster() {
  for (int i = 0; i < size(); ++i) kill(i);
}

bool etcd_cluster::starts() {
  for (int i = 0; i < size(); ++i) start(i);
  bool failed = false;
  eventually("etcd to answer", [&] {
    for (auto& m : members_) {
      if (m.pid > 0 && ::waitpid(m.pid, nullptr, WNOHANG) == m.pid) m.pid = -1, failed = true;
    }
    return failed || leader() >= 0;
  });
  if (!failed) until_whole();
  for (int i = 0; failed && i < size(); ++i) kill(i);
  return !failed;
}

int etcd_cluster::port(int server) const {
  return members_.at(static_cast<std::size_t>(server)).port;
}

std::string etcd_cluster::hosts() const {
  std::string all;
  for (const auto& m : members_) all += (all.empty() ? "" : ",") + address(m.port);
  return all;
}

std::string etcd_cluster::ctl(const std::string& words, const std::string& reads) const {
  const std::string command =
      "echo '" + reads + "' | ETCDCTL_API=3 etcdctl --endpoints=" + hosts() + " " + words + " 2>&1";
  FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) throw std::runtime_error("popen " + command);
  std::string said;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, out)) > 0;) said.append(part, n);
  if (::pclose(out) != 0) throw std::runtime_error(command + ": " + said);
  return said;
}

std::string etcd_cluster::metrics(int server) const try {
  tcp_client client(members_.at(static_cast<std::size_t>(server)).metrics_port);
  client.say("GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n");
  return client.hear_all();
} catch (const std::exception&) {
  return {};
}

long etcd_cluster::counted(const std::string& name) const {
  long sum = 0;
  for (int i = 0; i < size(); ++i) sum += value_of(metrics(i), name);
  return sum;
}

int etcd_cluster::leader() const {
  for (int i = 0; i < size(); ++i) {
    if (members_[static_cast<std::size_t>(i)].pid < 0) continue;
    if (value_of(metrics(i), "etcd_server_is_leader") == 1) return i;
  }
  return -1;
}

void etcd_cluster::until_whole() const {
  eventually("all etcd servers to follow one leader", [&] {
    int leaders = 0;
    for (int i = 0; i < size(); ++i) {
      if (members_[static_cast<std::size_t>(i)].pid < 0) continue;
      const auto said = metrics(i);
      if (value_of(said, "etcd_server_has_leader") != 1) return false;
      leaders += static_cast<int>(value_of(said, "etcd_server_is_leader"));
    }
    return leaders == 1;
  });
}

void etcd_cluster::kill(int server) {
  auto& m = members_.at(static_cast<std::size_t>(server));
  if (m.pid < 0) return;
  ::kill(m.pid, SIGKILL);
  ::waitpid(m.pid, nullptr, 0);
  m.pid = -1;
}

void etcd_cluster::start(int server) {
  std::string all;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    all += (i == 0 ? "" : ",") + std::to_string(i) + "=http://" + address(members_[i].peer_port);
  }
  auto& m = members_.at(static_cast<std::size_t>(server));
  const bool tls = !arguments_.empty() && arguments_[0].starts_with("--cert-file");
  const std::string here = (tls ? "https://" : "http://") + address(m.port);
  const std::string peers = "http://" + address(m.peer_port);
  std::vector<std::string> words{"etcd",
                                 "--name=" + std::to_string(server),
                                 "--data-dir=" + m.data,
                                 "--listen-client-urls=" + here,
                                 "--advertise-client-urls=" + here,
                                 "--listen-metrics-urls=http://" + address(m.metrics_port),
                                 "--listen-peer-urls=" + peers,
                                 "--initial-advertise-peer-urls=" + peers,
                                 "--initial-cluster=" + all,
                                 "--initial-cluster-token=" + std::to_string(members_[0].peer_port),
                                 "--heartbeat-interval=50",
                                 "--election-timeout=500",
                                 "--log-level=error"};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  m.pid = run(std::move(words), m.data + ".log");
}

void etcd_cluster::stop(int server) {
  ::kill(members_.at(static_cast<std::size_t>(server)).pid, SIGSTOP);
}

void etcd_cluster::resume(int server) {
  ::kill(members_.at(static_cast<std::size_t>(server)).pid, SIGCONT);
}

}  // namespace harness
