#include "twin.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "kernel/countdown.hpp"
#include "kernel/permits.hpp"
#include "kernel/rate.hpp"
#include "store/redis/commands.hpp"
#include "store/redis/notification_text.hpp"
#include "store/redis/scripts.hpp"

namespace twin {

using namespace holdfast::store;
using holdfast::result;
namespace redis = holdfast::store::redis;

namespace {

// ---- as text, so that one comparison is enough for all types and a difference is readable

std::ostream& operator<<(std::ostream& out, const owner_id& id) { return out << to_string(id); }

void show(std::ostream& out, const permits_record& r) {
  out << " | " << to_string(r.kind) << ' ' << r.capacity << ' ' << r.last_fence;
  auto holders = r.holders;  // the order of holders has no meaning
  std::sort(holders.begin(), holders.end(),
            [](const auto& a, const auto& b) { return a.owner < b.owner; });
  for (const auto& h : holders) {
    out << "\n  holder " << h.owner << ' ' << h.weight << ' ' << h.fence << ' ' << h.expires_at
        << ' ' << h.since_wall_at << ' ' << h.lingers << ' ' << h.peer << " '" << h.note << "'";
  }
  for (const auto& w : r.queue) {
    out << "\n  waiter " << w.owner << ' ' << w.weight << ' ' << w.priority << ' ' << w.lease_us
        << ' ' << w.expires_at << ' ' << w.since_wall_at << ' ' << w.lingers << ' ' << w.peer
        << " '" << w.note << "'";
  }
  for (const auto& l : r.history) {
    out << "\n  led " << l.fence << ' ' << l.since_wall_at << " '" << l.note << "'";
  }
}

void show_tell(std::ostream& out, std::vector<notification> tell) {
  // Grants are notified in their order; the order of the other "wanted" notifications has no
  // meaning.
  const auto is_wanted = [](const notification& n) { return n.what == notification_kind::wanted; };
  std::vector<notification> wanted;
  std::copy_if(tell.begin(), tell.end(), std::back_inserter(wanted), is_wanted);
  std::sort(wanted.begin(), wanted.end(),
            [](const notification& a, const notification& b) { return a.owner < b.owner; });
  std::erase_if(tell, is_wanted);
  tell.insert(tell.end(), wanted.begin(), wanted.end());
  for (const auto& n : tell) {
    out << "\n  tell " << static_cast<int>(n.what) << ' ' << n.owner << ' ' << n.fence << ' '
        << n.expires_at << ' ' << n.peer << ' ' << n.secret;
  }
}

// Only stores that see sessions die report the waiter before; and a mismatch reports only the kind
// in use.
std::string text_of(const permits_reply& r) {
  std::ostringstream out;
  out << static_cast<int>(r.outcome) << ' ' << r.fence << ' ' << r.expires_at << ' ' << r.now_at
      << ' ' << r.retry_after_us << ' ' << r.position << ' ' << r.replaced << ' ' << r.fresh << ' '
      << r.behind;
  const bool mismatch = r.outcome == permits_outcome::kind_mismatch ||
                        r.outcome == permits_outcome::capacity_mismatch;
  if (mismatch)
    out << " | " << to_string(r.found.kind) << ' ' << r.found.capacity;
  else
    show(out, r.found);
  show_tell(out, r.tell);
  return out.str();
}

std::string text_of(const countdown_reply& r) {
  std::ostringstream out;
  out << static_cast<int>(r.outcome) << ' ' << r.remaining << ' ' << r.now_at << ' '
      << r.retry_after_us << " | " << r.found.count;
  if (r.outcome == countdown_outcome::done) {
    out << ' ' << r.found.remaining << ' ' << r.found.expires_at;
    auto arrivals = r.found.arrivals;
    std::sort(arrivals.begin(), arrivals.end(),
              [](const auto& a, const auto& b) { return a.owner < b.owner; });
    for (const auto& a : arrivals) out << "\n  arrival " << a.owner << ' ' << a.forget_at;
    for (const auto& w : r.found.waiting) {
      out << "\n  waiter " << w.owner << ' ' << w.expires_at << ' ' << w.since_wall_at << ' '
          << w.peer << " '" << w.note << "'";
    }
  }
  show_tell(out, r.tell);
  return out.str();
}

std::string text_of(const rate_reply& r) {
  std::ostringstream out;
  out << static_cast<int>(r.outcome) << ' ' << r.now_at << ' ' << r.wait_us << ' ' << r.which;
  const bool undecided =
      r.outcome == rate_outcome::capacity_mismatch || r.outcome == rate_outcome::too_many;
  for (const auto& b : undecided ? std::vector<bucket_state>{} : r.buckets) {
    out << " | " << b.limit << ' ' << b.remaining << ' ' << b.wait_us << ' ' << b.full_us;
  }
  return out.str();
}

// "granted <owner> <fence> <expires_at> <key> <peer>": given to tests beside the reply.
std::vector<notification> read_told(const redis::resp_value& list) {
  std::vector<notification> all;
  for (const auto& one : list.items) {
    const auto space = one.text.rfind(' ');
    auto n = redis::parse_notifications(one.text.substr(0, space)).at(0);
    n.peer = one.text.substr(space + 1);
    if (n.peer == "-") n.peer.clear();
    all.push_back(std::move(n));
  }
  return all;
}

result<permits_reply> read(const redis::resp_value& v, const permits_command& c) {
  auto r = redis::read_permits(v, c.verb, c.lease_us);
  const bool tells = !v.items.empty() && v.items.back().type == redis::resp_type::array;
  if (r && c.verb != permits_verb::inspect && tells) r->tell = read_told(v.items.back());
  return r;
}

result<countdown_reply> read(const redis::resp_value& v, const countdown_command& c) {
  auto r = redis::read_countdown(v, c.verb);
  const bool mismatch = r && r->outcome == countdown_outcome::capacity_mismatch;
  if (r && c.verb != countdown_verb::inspect && !mismatch) r->tell = read_told(v.items.at(4));
  return r;
}

result<rate_reply> read(const redis::resp_value& v, const rate_command& c) {
  return redis::read_rate(v, c.buckets.size());
}

void append(std::string& to, const redis::script_frame& f, const std::string& name,
            const rate_command& c) {
  redis::append_rate(to, f, name, c);
}
void append(std::string& to, const redis::script_frame& f, const std::string& name,
            const permits_command& c) {
  redis::append_permits(to, f, name, c);
}
void append(std::string& to, const redis::script_frame& f, const std::string& name,
            const countdown_command& c) {
  redis::append_countdown(to, f, name, c);
}

template <class Command>
Command command_of(const step<Command>& s) {
  return s.command;
}
rate_command command_of(const rate_step& s) {
  auto c = s.command;
  c.buckets = s.buckets;
  return c;
}

template <class Record, class History>
std::optional<std::string> compare(const History& history,
                                   const std::vector<redis::resp_value>& answers) {
  Record record;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const auto time = history[i].time;
    const auto command = command_of(history[i]);
    const auto ours = read(answers[i], command);
    const auto wanted = text_of(holdfast::kernel::apply(record, command, {time, time}));
    const auto found = ours ? text_of(*ours) : "failed: " + ours.error().what;
    if (found == wanted) continue;
    return "step " + std::to_string(i) + ", verb " +
           std::to_string(static_cast<int>(command.verb)) + " of " + to_string(command.owner) +
           "\nkernel: " + wanted + "\nscript: " + found;
  }
  return std::nullopt;
}

template <class History>
std::string encode(const History& history, const std::string& name, redis::publication how) {
  std::string bytes;
  for (const auto& s : history) {
    append(bytes, {"twin", how, s.time}, name, command_of(s));
  }
  return bytes;
}

std::string with_bug(std::string text, const seeded_bug& bug) {
  const auto at = text.find(bug.text);
  if (at == text.npos) throw std::runtime_error("the script has no '" + bug.text + "' any more");
  return text.replace(at, bug.text.size(), bug.instead);
}

}  // namespace

stage::stage(const harness::redis_server& server, std::optional<seeded_bug> bug,
             redis::publication how)
    : how_(how) {
  server.may_stay("*", "where a test says what time it is the scripts let nothing end");
  options_ =
      redis::read_options(*holdfast::base::parse_url("redis+unix://" + server.socket())).value();
  connection_ = std::move(redis::greet(options_, redis::purpose::commands)).value();
  for (const auto& s : redis::scripts_of(redis::dialect::none, how)) {
    std::string load;
    redis::append_command(load, {"SCRIPT", "LOAD", s.text});
    run(std::move(load), 1);
  }
  const bool rate = bug && bug->of == which_script::rate;
  const auto script = rate ? redis::rate_script() : redis::permits_script();
  true_sha_ = sha_ = script.sha;
  if (!bug) return;
  const std::string text = with_bug(std::string(script.text), *bug);
  const std::string_view words[] = {"SCRIPT", "LOAD", text};
  std::string bytes;
  redis::append_command(bytes, words);
  sha_ = run(std::move(bytes), 1).front().text;
  if (sha_.size() != true_sha_.size())
    throw std::runtime_error("the changed script is refused: " + sha_);
}

std::vector<redis::resp_value> stage::run(std::string bytes, std::size_t count) {
  for (auto at = bytes.find(true_sha_); sha_ != true_sha_ && at != bytes.npos;
       at = bytes.find(true_sha_, at + 1)) {
    bytes.replace(at, sha_.size(), sha_);
  }
  using std::chrono::seconds;
  return std::move(redis::exchange(*connection_, bytes, count,
                                   {holdfast::boot_clock::now() + seconds(60)}))
      .value();
}

std::optional<std::string> stage::play(const permits_history& history) {
  const std::string name = "n" + std::to_string(++names_);
  return compare<permits_record>(history, run(encode(history, name, how_), history.size()));
}

std::optional<std::string> stage::play(const countdown_history& history) {
  const std::string name = "n" + std::to_string(++names_);
  return compare<countdown_record>(history, run(encode(history, name, how_), history.size()));
}

std::optional<std::string> stage::play(const rate_history& history) {
  const std::string name = "n" + std::to_string(++names_);
  return compare<rate_record>(history, run(encode(history, name, how_), history.size()));
}

}  // namespace twin
