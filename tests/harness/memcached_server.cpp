#include "harness/memcached_server.hpp"

#include <sys/wait.h>

#include <stdexcept>

#include "harness/eventually.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"

namespace harness {

namespace {
constexpr const char* user = "nobody";
constexpr const char* last_answer = "MN\r\n";
}  // namespace

memcached_server::memcached_server(std::vector<std::string> options)
    : options_(std::move(options)) {
  give_to(dir_.path().string(), user);
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

// The LRU maintainer is off: it moves keys between lists while a client lists them.
void memcached_server::start() {
  std::vector<std::string> words{
      "memcached", "-p", std::to_string(port_), "-l", "127.0.0.1", "-U", "0", "-t",
      "2",         "-o", "no_lru_maintainer"};
  words.insert(words.end(), options_.begin(), options_.end());
  const std::string log = dir_.file("log");
  process_.start(words, user, log);
  eventually("memcached to answer", [&] { return !process_.runs() || answers(); });
  if (!process_.runs()) {
    throw std::runtime_error("memcached does not start; is it installed? " + last_words(log));
  }
}

void memcached_server::stop() const {
  process_.stop();
  ::waitpid(process_.pid(), nullptr, WUNTRACED);
}

bool memcached_server::answers() const try {
  return ask("mn\r\n") == last_answer;
} catch (const std::runtime_error&) {
  return false;
}

std::string memcached_server::ask(const std::string& lines) const {
  tcp_client client(port_);
  client.say(lines + "mn\r\n");
  client.say_no_more();
  std::string all = client.hear_all();
  const std::string end = last_answer;
  if (all.ends_with(end)) all.erase(all.size() - end.size());
  return all;
}

}  // namespace harness
