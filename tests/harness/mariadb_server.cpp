#include "harness/mariadb_server.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "harness/eventually.hpp"
#include "harness/redis_server.hpp"
#include "paths.hpp"

namespace harness {

namespace {

constexpr const char* user = "mysql";
/// Otherwise each server writes 100 MB before it begins.
constexpr const char* small_log = "--innodb-log-file-size=16M";

bool says(const std::string& file, const std::string& words) {
  std::ifstream in(file);
  const std::string all(std::istreambuf_iterator<char>(in), {});
  return all.find(words) != std::string::npos;
}

}  // namespace

mariadb_server::mariadb_server(std::vector<std::string> options) : options_(std::move(options)) {
  give_to(dir_.path().string(), user);
  give_to(file("clock-shift"), user);
  // A folder of its own for temporary tables: two installations at the same time overwrite each
  // other's.
  server_process::run({"mariadb-install-db", "--no-defaults", "--datadir=" + file("data"),
                       "--tmpdir=" + dir_.path().string(),
                       "--auth-root-authentication-method=normal", "--skip-test-db", small_log},
                      user, file("log"));
  std::ofstream(file("init.sql")) << "create user if not exists admin@'%';\n"
                                     "grant all on *.* to admin@'%' with grant option;\n";
  for (int attempt = 0; attempt < 5; ++attempt) {  // another process may take the port before
    port_ = free_port();
    try {
      start();
      return;
    } catch (const std::runtime_error&) {
      if (attempt == 4) throw;
    }
  }
}

mariadb_server::~mariadb_server() { kill(); }

void mariadb_server::start() {
  const std::string log = file("log");
  std::filesystem::remove(log);
  std::vector<std::string> words{"/usr/sbin/mariadbd",
                                 "--no-defaults",
                                 "--datadir=" + file("data"),
                                 "--socket=" + file("socket"),
                                 "--pid-file=" + file("pid"),
                                 "--init-file=" + file("init.sql"),
                                 "--port=" + std::to_string(port_),
                                 "--bind-address=127.0.0.1",
                                 "--skip-name-resolve",
                                 "--max-connections=400",
                                 "--tmpdir=" + dir_.path().string(),
                                 small_log,
                                 "--innodb-flush-log-at-trx-commit=2",
                                 "--innodb-buffer-pool-size=32M"};
  words.insert(words.end(), options_.begin(), options_.end());
  process_.start(
      words, user, log,
      {"LD_PRELOAD=" HOLDFAST_SHIFTED_CLOCK, "HOLDFAST_CLOCK_SHIFT=" + file("clock-shift")});
  eventually("MariaDB to accept connections",
             [&] { return !process_.runs() || says(log, "ready for connections"); });
  if (!process_.runs()) throw std::runtime_error("mariadbd does not start: " + last_words(log));
}

}  // namespace harness
