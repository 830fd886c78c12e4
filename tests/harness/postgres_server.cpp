#include "harness/postgres_server.hpp"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "harness/eventually.hpp"
#include "harness/process.hpp"
#include "harness/redis_server.hpp"
#include "paths.hpp"

namespace harness {

namespace {

namespace fs = std::filesystem;

/// Debian keeps the versions apart; the newest is used.
std::string postgres_program(const std::string& name) {
  std::vector<fs::path> found;
  const fs::path versions = "/usr/lib/postgresql";
  if (fs::exists(versions)) {
    for (const auto& v : fs::directory_iterator(versions)) {
      if (fs::exists(v.path() / "bin" / name)) found.push_back(v.path() / "bin" / name);
    }
  }
  if (found.empty()) return name;
  return std::max_element(found.begin(), found.end())->string();
}

void append(const std::string& file, const std::vector<std::string>& lines) {
  std::ofstream out(file, std::ios::app);
  for (const auto& line : lines) out << line << "\n";
}

bool says(const std::string& file, const std::string& words) {
  std::ifstream in(file);
  const std::string all(std::istreambuf_iterator<char>(in), {});
  return all.find(words) != std::string::npos;
}

void init_database(const std::string& data, const std::string& log) {
  server_process::run({postgres_program("initdb"), "-D", data, "-A", "trust", "-E", "UTF8",
                       "--locale=C", "--no-sync", "--no-instructions", "-U", "postgres"},
                      postgres_user(), log);
}

/// The files of a server that has never run.
struct new_files {
  new_files() {
    give_to(dir.path().string(), postgres_user());
    init_database(dir.file("data"), dir.file("log"));
  }
  temp_dir dir;
};

/// initdb takes ten times as long as a copy of what it makes, if files are in memory. So the second
/// server of a process and all later ones get a copy.
void make_files(const std::string& data, const std::string& log) {
  static std::atomic<bool> made{false};
  if (!made.exchange(true)) return init_database(data, log);
  static const new_files all;
  server_process::run({"cp", "-R", all.dir.file("data"), data}, postgres_user(), log);
}

}  // namespace

const std::string& postgres_user() {
  static const std::string name = "postgres";
  return name;
}

postgres_server::postgres_server(std::vector<std::string> configuration) {
  give_to(dir_.path().string(), postgres_user());
  give_to(dir_.file("clock-shift"), postgres_user());
  make_files(data(), file("log"));
  append(data() + "/postgresql.conf",
         {"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "fsync = off",
          "full_page_writes = off", "shared_buffers = 32MB", "max_connections = 300",
          "max_wal_size = 200MB"});
  append(data() + "/postgresql.conf", configuration);
  start_on_a_free_port();
}

postgres_server::postgres_server(const postgres_server& primary,
                                 std::vector<std::string> configuration) {
  give_to(dir_.path().string(), postgres_user());
  give_to(dir_.file("clock-shift"), postgres_user());
  server_process::run(
      {postgres_program("pg_basebackup"), "-D", data(), "-R", "--no-sync", "-c", "fast", "-d",
       "host=127.0.0.1 user=postgres port=" + std::to_string(primary.port())},
      postgres_user(), file("log"));
  append(data() + "/postgresql.conf", configuration);
  start_on_a_free_port();
}

postgres_server::~postgres_server() { kill(); }

// Another process may take a port before the server does.
void postgres_server::start_on_a_free_port() {
  for (int attempt = 0; attempt < 5; ++attempt) {
    port_ = free_port();
    try {
      return start();
    } catch (const std::runtime_error&) {
      if (attempt == 4) throw;
    }
  }
}

void postgres_server::start() {
  const std::string log = file("log");
  fs::remove(log);
  process_.start(
      {postgres_program("postgres"), "-D", data(), "-p", std::to_string(port_)}, postgres_user(),
      log, {"LD_PRELOAD=" HOLDFAST_SHIFTED_CLOCK, "HOLDFAST_CLOCK_SHIFT=" + file("clock-shift")});
  eventually("PostgreSQL to accept connections",
             [&] { return !process_.runs() || says(log, "ready to accept"); });
  if (!process_.runs()) throw std::runtime_error("postgres does not start: " + last_words(log));
}

// Each connection has a process, in a session of its own.
void postgres_server::signal_all(int number) const {
  process_.signal(number);
  for (const pid_t child : children_of(process_.pid())) ::kill(child, number);
}

void postgres_server::let_in(const std::string& rule) {
  const std::string hba = data() + "/pg_hba.conf";
  std::ifstream in(hba);
  const std::string before(std::istreambuf_iterator<char>(in), {});
  std::ofstream(hba) << rule << "\n" << before;
}

void postgres_server::configure(const std::string& line) {
  append(data() + "/postgresql.conf", {line});
}

pgbouncer::pgbouncer(const postgres_server& server, int pool) {
  give_to(dir_.path().string(), postgres_user());
  const std::string log = dir_.file("log");
  for (int attempt = 0; attempt < 5 && !process_.runs(); ++attempt) {
    port_ = free_port();
    std::ofstream(dir_.file("users")) << "\"postgres\" \"\"\n\"least\" \"\"\n";
    std::ofstream(dir_.file("ini"))
        << "[databases]\n* = host=127.0.0.1 port=" << server.port() << "\n[pgbouncer]\n"
        << "listen_addr = 127.0.0.1\nlisten_port = " << port_
        << "\nauth_type = trust\nauth_file = " << dir_.file("users") << '\n'
        << "unix_socket_dir =\npool_mode = transaction\nmax_client_conn = 400\n"
        << "default_pool_size = " << pool << "\nignore_startup_parameters = extra_float_digits\n";
    process_.start({"/usr/sbin/pgbouncer", dir_.file("ini")}, postgres_user(), log);
    eventually("pgbouncer to listen", [&] { return !process_.runs() || says(log, "process up"); });
  }
  if (!process_.runs()) throw std::runtime_error("pgbouncer does not start: " + last_words(log));
}

}  // namespace harness
