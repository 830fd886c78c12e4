#include "harness/etcd_cluster.hpp"

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "harness/eventually.hpp"
#include "harness/tcp.hpp"

namespace harness {

namespace {

// Each consensus decision waits for the disks of a majority.
std::filesystem::path fastest_folder() {
  const std::filesystem::path memory = "/dev/shm",
                              temporary = std::filesystem::temp_directory_path();
  return std::filesystem::is_directory(memory) && !temporary.string().starts_with(memory.string())
             ? memory
             : temporary;
}

std::string address(int port) { return "127.0.0.1:" + std::to_string(port); }

long value_of(const std::string& metrics, const std::string& name) {
  const auto at = metrics.find("\n" + name + " ");
  return at == metrics.npos ? 0
                            : static_cast<long>(std::stod(metrics.substr(at + name.size() + 2)));
}

}  // namespace

etcd_cluster::etcd_cluster(int servers, std::vector<std::string> arguments)
    : server_group("etcd", servers, fastest_folder()), arguments_(std::move(arguments)) {
  begin("etcd-server");
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

void etcd_cluster::lose_data(int server) const {
  std::filesystem::remove_all(members().at(static_cast<std::size_t>(server)).data);
}

std::string etcd_cluster::metrics(int server) const try {
  tcp_client client(members().at(static_cast<std::size_t>(server)).third_port);
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
    if (!is_up(i)) continue;
    if (value_of(metrics(i), "etcd_server_is_leader") == 1) return i;
  }
  return -1;
}

void etcd_cluster::until_whole() const {
  eventually("all etcd servers to follow one leader", [&] {
    int leaders = 0;
    for (int i = 0; i < size(); ++i) {
      if (!is_up(i)) continue;
      const auto said = metrics(i);
      if (value_of(said, "etcd_server_has_leader") != 1) return false;
      leaders += static_cast<int>(value_of(said, "etcd_server_is_leader"));
    }
    return leaders == 1;
  });
}

std::vector<std::string> etcd_cluster::command(int server) const {
  std::string all;
  for (std::size_t i = 0; i < members().size(); ++i) {
    all += (i == 0 ? "" : ",") + std::to_string(i) + "=http://" + address(members()[i].peer_port);
  }
  const auto& m = members().at(static_cast<std::size_t>(server));
  const bool tls = !arguments_.empty() && arguments_[0].starts_with("--cert-file");
  const std::string here = (tls ? "https://" : "http://") + address(m.port);
  const std::string peers = "http://" + address(m.peer_port);
  std::vector<std::string> words{
      "etcd",
      "--name=" + std::to_string(server),
      "--data-dir=" + m.data,
      "--listen-client-urls=" + here,
      "--advertise-client-urls=" + here,
      "--listen-metrics-urls=http://" + address(m.third_port),
      "--listen-peer-urls=" + peers,
      "--initial-advertise-peer-urls=" + peers,
      "--initial-cluster=" + all,
      "--initial-cluster-token=" + std::to_string(members()[0].peer_port),
      "--heartbeat-interval=50",
      "--election-timeout=500",
      "--log-level=error"};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  return words;
}

}  // namespace harness
