#include "tool/serve/dashboard.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <optional>
#include <utility>

#include "tool/failure.hpp"
#include "tool/json.hpp"
#include "tool/progress.hpp"
#include "tool/serve/api_json.hpp"
#include "tool/serve/page.hpp"
#include "tool/serve/unlock_request.hpp"
#include "tool/serve/url_query.hpp"
#include "tool/take_away.hpp"
#include "tool/text.hpp"
#include "tool/wait_graph.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::system_clock;

constexpr std::chrono::seconds between_healths{1};
constexpr std::size_t busiest_shown = 20;

http_answer json_answer(std::string body, unsigned status = 200) {
  http_answer a;
  a.status = status;
  a.body = std::move(body);
  return a;
}

http_answer refusal(unsigned status, std::string_view why) {
  return json_answer("{\"schema\":1,\"error\":" + json_text(why) + "}\n", status);
}

http_answer not_allowed(std::string allowed) {
  auto a = refusal(405, allowed + " only");
  a.headers.emplace_back("Allow", std::move(allowed));
  return a;
}

http_answer too_many_wait() {
  return refusal(503, "too many requests wait for the first round over all names");
}

/// In a time that does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return different == 0;
}

std::string event(std::string_view name, const std::string& json_line) {
  return "event: " + std::string(name) + "\ndata: " + json_line + "\n";  // json_line ends the line
}

http_answer file_answer(const page_file& f) {
  http_answer a;
  a.type = f.type;
  a.body = f.text;
  return a;
}

void log_unlock(const unlock_request& what, const std::string& url, const taken_away& came,
                const std::vector<participant>& from, log& to) {
  std::string holders, owners;
  for (const participant& p : from) {
    const std::string_view comma = &p == from.data() ? "" : ", ";
    holders.append(comma).append(holder_phrase(p, system_clock::now()));
    owners.append(comma).append(p.short_id);
  }
  std::string text = in_words(what.lock, came, what.reason) + "; a viewer asked for it";
  if (came.removed + came.left > 0) text += "; it was held by " + holders;
  to.write(level::warning, came.removed > 0 ? "unlocked" : "not_unlocked", text,
           {{"lock", what.lock}, {"store", url}, {"owner", owners}});
}

http_answer unlock_at(const session* s, const unlock_request& what, const std::string& url,
                      log& to) {
  if (s == nullptr) return refusal(503, "the store is away, or has too much to do");
  try {
    const name_info info = s->show(what.lock);
    refuse_without_holders(info);
    const auto from = targets(info, what.owner);
    if (from.empty() && !info.holders.empty())
      return refusal(409, "it is held, but not by " + what.owner);
    const taken_away came = take_away(*s, what.lock, what.owner, from);
    log_unlock(what, url, came, from, to);
    return json_answer(force_unlock_json(what.lock, url, came.removed, came.left, what.reason,
                                         system_clock::now()),
                       came.left == 0 ? 200 : 409);
  } catch (const failure_exit& e) {
    return refusal(409, e.what());
  } catch (const error& e) {
    return refusal(e.retryable() ? 503 : 409, unsigned_message(e.what()));
  }
}

shared_answer::document locks_of(const board& b) {
  const snapshot all = b.take(system_clock::now());
  return {without_end(list_json(all.names, all.store, all.taken_at)), all.as_of};
}

shared_answer::document graph_of(const board& b, const pids_above& above) {
  const snapshot all = b.take(system_clock::now());
  std::vector<name_info> names;
  for (const listed_name& n : all.names)
    if (!n.info.waiters.empty()) names.push_back(n.info);
  return {without_end(graph_json(make_wait_graph(names, above), all.store, all.taken_at)),
          all.as_of};
}

double age_of(const shared_answer::document& d) {
  return std::max(0.0, seconds_of(system_clock::now() - d.as_of));
}

}  // namespace

/// The state of one browser.
class dashboard::viewer : public http_stream {
 public:
  explicit viewer(dashboard& of) : of_(of), seen_(of.stores_.size()) {}

  std::shared_ptr<const std::string> next() override {
    if (!std::exchange(greeted_, true))
      return std::make_shared<const std::string>(
          "retry: 1000\n" + event("hello", hello_json(of_.urls(), !of_.options_.token.empty())));
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (auto piece = of_.stores_[i]->what.since(seen_[i])) return piece;
    }
    return healths();
  }

 private:
  std::shared_ptr<const std::string> healths() {
    const boot_time now = boot_clock::now();
    for (const auto& w : of_.stores_) w->by->viewed();
    if (now < healths_again_) return nullptr;
    healths_again_ = now + between_healths;
    std::string text;
    for (std::size_t i = 0; i < of_.stores_.size(); ++i) {
      const board& b = of_.stores_[i]->what;
      text += event("health", health_json(i, b.url(), b.health(), system_clock::now()));
    }
    return std::make_shared<const std::string>(std::move(text));
  }

  dashboard& of_;
  std::vector<board::cursor> seen_;  ///< by store
  bool greeted_ = false;
  boot_time healths_again_{};
};

dashboard::watched::watched(std::size_t index, std::string url, std::string of_metrics,
                            const pids_above& above)
    : what(index, std::move(url)),
      label(std::move(of_metrics)),
      locks([this] { return what.version(); }, [this] { return locks_of(what); }),
      graph([this] { return what.version(); }, [this, above] { return graph_of(what, above); }) {}

dashboard::dashboard(std::vector<watched_store> stores, dashboard_options options, log& to)
    : options_(std::move(options)), log_(to) {
  for (auto& s : stores) {
    std::string label = s.label.empty() ? s.url : std::move(s.label);
    stores_.push_back(std::unique_ptr<watched>(
        new watched(stores_.size(), std::move(s.url), std::move(label), options_.above)));
  }
  server_ = std::make_unique<http_server>(
      http_address{options_.option, options_.listen, options_.host_option, options_.hosts},
      options_.limits, [this](const http_request& r, http_reply reply) { handle(r, reply); });
  for (std::size_t i = 0; i < stores.size(); ++i)
    stores_[i]->by = std::make_unique<scanner>(
        stores_[i]->what, std::move(stores[i].open), [this] { server_->wake(); }, options_.plan);
  server_->start();
}

dashboard::~dashboard() {
  server_->stop();
  for (const auto& w : stores_) w->by.reset();
}

std::vector<std::string> dashboard::urls() const {
  std::vector<std::string> all;
  for (const auto& w : stores_) all.push_back(w->what.url());
  return all;
}

/// The store with the number in the query; the first one if there is none.
dashboard::watched* dashboard::store_of(const http_request& r) {
  const std::string text = query_value(r.query, "store").value_or("0");
  std::size_t index = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (wrong != std::errc{} || end != text.data() + text.size() || index >= stores_.size())
    return nullptr;
  return stores_[index].get();
}

void dashboard::share(shared_answer& of, const judge& is_good, const receiver& then) {
  const auto later = of.ask(is_good, then);
  if (later) server_->after(*later, [&of] { of.tell(); });
}

void dashboard::locks(watched& w, const http_request&, const judge& is_good, const receiver& then) {
  share(w.locks, is_good, then);
}

void dashboard::graph(watched& w, const http_request&, const judge& is_good, const receiver& then) {
  share(w.graph, is_good, then);
}

void dashboard::lock(watched& w, const http_request& r, const judge&, const receiver& then) {
  const auto now = system_clock::now();
  const std::string name = query_value(r.query, "lock").value_or("");
  w.what.want(name, boot_clock::now());
  auto found = w.what.find(name, now);
  if (!found) {
    found.emplace();
    found->what.info.name = name;
    found->at = w.what.listed_at();
  }
  then({without_end(lock_page_json(w.what.url(), found->what, w.what.history_of(name), now)),
        found->at});
}

void dashboard::busiest(watched& w, const http_request&, const judge&, const receiver& then) {
  then({without_end(busiest_json(w.what.url(), w.what.busiest(busiest_shown))),
        w.what.health().answered_at});
}

/// A client that acts on the data sends the greatest age it accepts.
void dashboard::answer_to(question ask, watched& w, const http_request& r,
                          const http_reply& reply) {
  const auto limit = query_value(r.query, "max_age");
  const auto longest = limit ? seconds_in(*limit) : std::nullopt;
  if (limit && !longest) return reply(refusal(400, "max_age is a number of seconds"));
  const store_health health = w.what.health();
  if (!is_known(health.answered_at))
    return reply(refusal(503, "the store has not answered yet: " + health.trouble()));
  const auto is_good = [longest](const document& d) { return !longest || age_of(d) <= *longest; };
  (this->*ask)(w, r, is_good, [longest, trouble = health.trouble(), reply](const document& d) {
    const double age = age_of(d);
    if (longest && age > *longest)
      return reply(
          refusal(503, "the last answer is " + std::to_string(age) + " seconds old" +
                           (trouble.empty() ? "" : ", and the store is away: " + trouble)));
    http_answer a;
    a.shared = d.text;
    a.body = age_end(age);
    reply(std::move(a));
  });
}

http_answer dashboard::health(const watched& w) const {
  const auto at =
      std::find_if(stores_.begin(), stores_.end(), [&](const auto& s) { return s.get() == &w; });
  return json_answer(health_json(static_cast<std::size_t>(at - stores_.begin()), w.what.url(),
                                 w.what.health(), system_clock::now()));
}

/// Answers when all stores are fresh. They are waited for at the same time: several that hang take
/// no longer than one.
void dashboard::metrics(const http_reply& reply) {
  struct round {
    std::atomic<std::size_t> stale;
    std::atomic<bool> refused{false};
  };
  const auto of_all = std::make_shared<round>(stores_.size() + 1);
  const auto told = [this, of_all, reply](bool fresh) {
    if (!fresh && !of_all->refused.exchange(true)) reply(too_many_wait());
    if (--of_all->stale == 0 && !of_all->refused) reply(metrics_now());
  };
  for (const auto& w : stores_) w->by->when_fresh(told, [reply] { return reply.wanted(); });
  told(true);  // for this call: it has told every store
}

http_answer dashboard::metrics_now() const {
  std::vector<snapshot> all;
  for (const auto& w : stores_) {
    all.push_back(w->what.take(system_clock::now()));
    all.back().store = w->label;
  }
  http_answer a;
  a.type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
  a.body = options_.metrics(all);
  return a;
}

http_answer dashboard::events() {
  http_answer a;
  a.type = "text/event-stream";
  a.stream = std::make_unique<viewer>(*this);
  return a;
}

void dashboard::unlock(const http_request& r, const http_reply& reply) {
  if (options_.token.empty())
    return reply(refusal(403, "this page is read-only: start holdfast serve with --allow-unlock"));
  if (!same_secret(r.authorization, "Bearer " + options_.token))
    return reply(refusal(401, "the token is missing or wrong"));
  const auto what = unlock_request_of(r.body);
  watched* const at = store_of(r);
  if (!what || at == nullptr)
    return reply(refusal(400, "send {\"lock\":…,\"owner\":…,\"reason\":…} to ?store=NUMBER"));
  at->by->perform(what->lock, [this, reply, what = *what, url = at->what.url()](const session* s) {
    reply(unlock_at(s, what, url, log_));
  });
}

void dashboard::handle(const http_request& r, const http_reply& reply) {
  // Another site's page could open many streams, or make us write long texts, though it may not
  // read them.
  if ((r.path.starts_with("/api/") || r.path == "/metrics") && r.foreign)
    return reply(refusal(403, "a page of another site may not send requests"));
  const bool unlocks = r.path == "/api/unlock";
  if (unlocks && r.method == "POST") return unlock(r, reply);
  if (unlocks || r.method != "GET") return reply(not_allowed(unlocks ? "POST" : "GET, HEAD"));
  if (r.path == "/metrics" && options_.metrics) return metrics(reply);
  static constexpr std::array<std::pair<std::string_view, question>, 5> questions{
      {{"/api/locks", &dashboard::locks},
       {"/api/lock", &dashboard::lock},
       {"/api/graph", &dashboard::graph},
       {"/api/busiest", &dashboard::busiest},
       {"/api/health", nullptr}}};
  for (const auto& [path, ask] : questions) {
    if (r.path != path) continue;
    watched* const at = store_of(r);
    if (at == nullptr) return reply(refusal(404, "there is no such store"));
    if (ask == &dashboard::lock && !query_value(r.query, "lock"))
      return reply(refusal(400, "name the lock: ?lock=NAME"));
    return at->by->when_fresh(
        [this, reply, r, at, ask = ask](bool fresh) {
          if (!fresh) return reply(too_many_wait());
          if (ask == nullptr) return reply(health(*at));
          answer_to(ask, *at, r, reply);
        },
        [reply] { return reply.wanted(); });
  }
  reply(answer(r));
}

http_answer dashboard::answer(const http_request& r) {
  if (r.path == "/api/events") return events();
  for (const page_file& f : page_files())
    if (f.path == r.path) return file_answer(f);
  return refusal(404, "there is no such page");
}

}  // namespace holdfast::tool
