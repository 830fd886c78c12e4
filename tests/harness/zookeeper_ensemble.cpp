#include "harness/zookeeper_ensemble.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "harness/eventually.hpp"
#include "harness/tcp.hpp"

namespace harness {

namespace {

constexpr const char* classes =
    "/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar:/usr/share/java/"
    "slf4j-nop.jar";

}  // namespace

zookeeper_ensemble::zookeeper_ensemble(int servers)
    : server_group("zookeeper", servers, std::filesystem::temp_directory_path()) {
  begin("zookeeper");
}

void zookeeper_ensemble::prepare() {
  std::string all;
  for (std::size_t i = 0; size() > 1 && i < members().size(); ++i) {
    const auto& m = members()[i];
    all += "server." + std::to_string(i + 1) + "=127.0.0.1:" + std::to_string(m.peer_port) + ":" +
           std::to_string(m.third_port) + "\n";
  }
  for (std::size_t i = 0; i < members().size(); ++i) {
    const std::string& data = members()[i].data;
    std::filesystem::create_directories(data);
    std::ofstream(data + "/myid") << i + 1;
    std::ofstream(data + ".cfg")
        << "tickTime=200\ninitLimit=50\nsyncLimit=50\nminSessionTimeout=200\n"
           "maxSessionTimeout=86400000\nmaxClientCnxns=0\nadmin.enableServer=false\n"
           "4lw.commands.whitelist=*\nclientPortAddress=127.0.0.1\nclientPort="
        << members()[i].port << "\ndataDir=" << data << "\n"
        << all;
  }
}

void zookeeper_ensemble::lose_data(int server) const {
  std::filesystem::remove_all(members().at(static_cast<std::size_t>(server)).data + "/version-2");
}

std::vector<std::string> zookeeper_ensemble::command(int server) const {
  return {"java",
          "-XX:TieredStopAtLevel=1",
          "-XX:+UseSerialGC",
          "-Xmx192m",
          "-Dzookeeper.forceSync=no",
          "-Dznode.container.checkIntervalMs=1000",
          "-cp",
          classes,
          "org.apache.zookeeper.server.quorum.QuorumPeerMain",
          members().at(static_cast<std::size_t>(server)).data + ".cfg"};
}

std::string zookeeper_ensemble::ask(int server, const std::string& word,
                                    std::chrono::seconds patience) const try {
  tcp_client client(members().at(static_cast<std::size_t>(server)).port, patience);
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
    const auto said = is_up(i) ? ask(i, "srvr") : std::string();
    if (said.find("Mode: leader") != said.npos || said.find("Mode: standalone") != said.npos)
      return i;
  }
  return -1;
}

// A server (3.8.0) that is about to begin may accept a four-letter word and never answer it.
void zookeeper_ensemble::until_whole() const {
  constexpr std::chrono::seconds asked_again_after{5};
  eventually("all ZooKeeper servers to serve", [&] {
    for (int i = 0; i < size(); ++i) {
      if (!is_up(i)) continue;
      if (ask(i, "srvr", asked_again_after).find("Mode: ") == std::string::npos) return false;
    }
    return leader() >= 0;
  });
}

}  // namespace harness
