#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <holdfast/store/contender_store.hpp>
#include <map>
#include <mutex>

namespace kernel_test {

/// A contender store in memory, with one session; the test queues the others. It does what a test
/// wants, and counts its calls. Thread-safe as the port demands.
class fake_contender_store final : public holdfast::store::contender_store {
 public:
  using contender = holdfast::store::contender;
  using contender_data = holdfast::store::contender_data;
  template <class T>
  using result = holdfast::result<T>;

  explicit fake_contender_store(holdfast::clock& on) : clock_(on) {}

  // ---- for the test
  bool tells_line = false;       ///< enter() returns the queue
  bool lose_reply = false;       ///< the next enter() is carried out, and its reply is lost
  bool lose_replaced = false;    ///< the same of the next replace()
  bool names_by_owner = false;   ///< as in etcd: an entry created anew has the name of the former
  bool repeat_requests = false;  ///< each enter() is sent twice, and one copy is still on its way
  std::atomic<int> fail_leaves{0};       ///< this many are not carried out
  bool delay_leave = false;              ///< the next one has no answer, and is still on its way
  std::atomic<int> fail_reads{0};        ///< this many reads of one entry are not answered
  std::atomic<int> fail_lists{0};        ///< this many queries of the queue are not answered
  std::atomic<int> cannot_watch{0};      ///< this many queue queries: the alarm comes at once
  std::atomic<int> cannot_watch_one{0};  ///< the same for this many entries and records
  std::atomic<int> calls_late{0};  ///< this many are not answered, and the test calls `late_alarm`
  alarm late_alarm{};
  bool keeps_arrival_alarm = false;          ///< as `late_alarm`, for queues that it answers
  std::atomic<int> fail_watched_records{0};  ///< this many watched records are not answered
  std::function<void()> on_enter{};          ///< before the next one is entered
  std::function<void()> on_confirm{};        ///< while the store answers
  std::function<void()> before_confirm{};    ///< before the next one
  std::function<void()> on_leave{};          ///< after the next one, before its answer
  std::function<void()> on_listed{};         ///< after the next list, before its answer
  std::function<void()> on_replace{};        ///< before a record is replaced
  std::function<void()> on_lost{};           ///< called when the lost answer was given up
  std::atomic<int> entered_count{0};
  std::atomic<int> listed{0};
  std::atomic<int> left{0};
  std::atomic<int> record_reads{0};
  std::atomic<int> record_waits{0};    ///< how often a waiter asked for a record
  std::atomic<int> record_watches{0};  ///< how often a waiter also watched the record
  holdfast::store::moment now{1, 1, false};
  std::chrono::nanoseconds safe_for{std::chrono::hours{1}};
  std::atomic<bool> unproven = false;  ///< the session was valid for that long, and is over now
  std::uint64_t session = 1;  ///< a new number: earlier entries belong to a session that has ended

  void put(const std::string& name, contender who) {
    const std::lock_guard guard{mutex_};
    add(name, std::move(who), {});
  }
  /// As if its session had ended.
  void remove_all(const std::string& name, const holdfast::store::owner_id& owner) {
    std::vector<std::string> nodes;
    {
      const std::lock_guard guard{mutex_};
      for (const auto& at : lines_[name]) {
        if (at.who.owner == owner) nodes.push_back(at.who.node);
      }
    }
    (void)take_out(name, nodes);
  }
  /// As a client that connects again: something may have changed meanwhile.
  void end_watches(const std::string& name) {
    std::vector<alarm> calls;
    {
      const std::lock_guard guard{mutex_};
      for (auto& at : lines_[name]) {
        for (auto& call : std::exchange(at.alarms, {})) calls.push_back(std::move(call));
      }
    }
    for (const auto& call : calls) call();
  }
  void remove_last(const std::string& name) {
    std::string node;
    {
      const std::lock_guard guard{mutex_};
      node = lines_[name].back().who.node;
    }
    (void)take_out(name, {&node, 1});
  }
  /// Carries out the requests that are still on their way.
  void deliver_late() {
    const std::lock_guard guard{mutex_};
    for (auto& [name, who, says] : std::exchange(late_, {})) add(name, std::move(who), says);
    for (auto& gone : std::exchange(late_leaves_, {})) {
      std::erase_if(lines_[gone.name],
                    [&](const stand& at) { return is_same_place(at.who, gone.who); });
    }
  }
  /// As if the record had been unused for as long as it is kept.
  void end_record(const std::string& name) {
    const std::lock_guard guard{mutex_};
    records_.erase(name);
  }
  std::size_t size(const std::string& name) {
    const std::lock_guard guard{mutex_};
    return lines_[name].size();
  }
  std::size_t watched(const std::string& name) {
    const std::lock_guard guard{mutex_};
    std::size_t n = 0;
    for (const auto& at : lines_[name]) n += at.alarms.size();
    return n;
  }

  // ---- the port
  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return url_; }
  const std::string& peer() const noexcept override { return peer_; }
  holdfast::boot_time safe_until(std::uint64_t of) const noexcept override {
    if (of != session) return {};
    return unproven ? clock_.now() : clock_.now() + safe_for;
  }
  std::string address(std::string_view name, const std::string& node) const override {
    return std::string(name) + "/" + node;
  }
  std::chrono::nanoseconds safe_span() const noexcept override { return safe_for; }

  result<entered> enter(std::string_view name, const contender& who, const contender_data& says,
                        std::span<const std::string> leaving) override {
    ++entered_count;
    if (const auto call = std::exchange(on_enter, {})) call();
    const bool replaced = take_out(name, leaving);
    const std::lock_guard guard{mutex_};
    auto in = add(std::string(name), who, says);
    in.replaced = replaced;
    in.repeated = repeat_requests;
    if (repeat_requests) late_.push_back({std::string(name), who, says});
    if (tells_line) in.line = line_of(name);
    if (!std::exchange(lose_reply, false)) return in;
    return holdfast::failure{holdfast::errc::unavailable, "the reply was lost", true};
  }
  result<std::vector<contender>> contenders(std::string_view name, as_of when,
                                            alarm on_arrival) override {
    ++listed;
    if (on_arrival && cannot_watch > 0 && cannot_watch-- > 0) on_arrival();
    if (on_arrival && calls_late > 0 && calls_late-- > 0) {
      late_alarm = std::move(on_arrival);
      return holdfast::failure{holdfast::errc::unavailable, "not now"};
    }
    if (on_arrival && keeps_arrival_alarm) late_alarm = std::move(on_arrival);
    if (fail_lists > 0 && fail_lists-- > 0) {
      return holdfast::failure{holdfast::errc::unavailable, "not now"};
    }
    std::unique_lock lock{mutex_};
    if (when == as_of::settled) late_.clear(), late_leaves_.clear();
    auto line = line_of(name);
    lock.unlock();
    if (const auto call = std::exchange(on_listed, {})) call();
    return line;
  }
  result<bool> leave(std::string_view name, std::span<const std::string> nodes) override {
    ++left;
    if (fail_leaves > 0 && fail_leaves-- > 0) {
      return holdfast::failure{holdfast::errc::unavailable, "not now"};
    }
    if (std::exchange(delay_leave, false)) {
      const std::lock_guard guard{mutex_};
      for (const auto& node : nodes) {
        if (const auto* const at = find(name, node)) {
          late_leaves_.push_back({std::string(name), at->who, {}});
        }
      }
      return holdfast::failure{holdfast::errc::unavailable, "no answer", true};
    }
    const bool gone = take_out(name, nodes);
    if (const auto call = std::exchange(on_leave, {})) call();
    return gone;
  }
  result<std::optional<contender_data>> read(std::string_view name, const std::string& node,
                                             alarm on_change) override {
    if (fail_reads > 0 && fail_reads-- > 0) {
      return holdfast::failure{holdfast::errc::unavailable, "not now"};
    }
    if (on_change && ends_watch()) std::exchange(on_change, {})();
    const std::lock_guard guard{mutex_};
    auto* const at = find(name, node);
    if (at == nullptr) return std::optional<contender_data>{};
    if (on_change) at->alarms.push_back(std::move(on_change));
    return std::optional(at->says);
  }
  result<std::vector<std::optional<contender_data>>> read(std::string_view name,
                                                          std::span<const contender> all) override {
    const std::lock_guard guard{mutex_};
    std::vector<std::optional<contender_data>> said;
    for (const auto& c : all) {
      const auto* const at = find(name, c.node);
      said.push_back(at == nullptr ? std::nullopt : std::optional(at->says));
    }
    return said;
  }
  result<bool> write(std::string_view name, const std::string& node,
                     const contender_data& says) override {
    const std::lock_guard guard{mutex_};
    auto* const at = find(name, node);
    if (at == nullptr) return false;
    at->says = says;
    return true;
  }
  std::vector<result<bool>> confirm(std::span<const node_of> nodes) override {
    if (const auto call = std::exchange(before_confirm, {})) call();
    std::unique_lock lock{mutex_};
    std::vector<result<bool>> there;
    for (const auto& p : nodes) there.emplace_back(find(p.name, p.node) != nullptr);
    lock.unlock();
    if (on_confirm) on_confirm();
    return there;
  }
  result<versioned> record(std::string_view name, bool waits, alarm on_change) override {
    if (on_change && ends_watch()) on_change();
    const std::lock_guard guard{mutex_};
    ++record_reads;
    record_waits += waits ? 1 : 0;
    record_watches += on_change ? 1 : 0;
    if (on_change && fail_watched_records > 0 && fail_watched_records-- > 0) {
      return holdfast::failure{holdfast::errc::unavailable, "not now"};
    }
    return records_[std::string(name)];
  }
  result<std::optional<revision>> replace(std::string_view name, std::string_view text,
                                          revision version, std::int64_t) override {
    if (const auto call = std::exchange(on_replace, {})) call();
    std::unique_lock lock{mutex_};
    auto& r = records_[std::string(name)];
    if (r.version != version) return std::optional<revision>{};
    r = text.empty() ? versioned{} : versioned{std::string(text), ++last_};
    if (std::exchange(lose_replaced, false)) {
      lock.unlock();
      if (const auto call = std::exchange(on_lost, {})) call();
      return holdfast::failure{holdfast::errc::unavailable, "the reply was lost", true};
    }
    return std::optional(r.version);
  }
  result<holdfast::store::moment> time() override { return now; }
  result<std::vector<used_name>> names() override {
    const std::lock_guard guard{mutex_};
    std::vector<used_name> all;
    for (const auto& [name, r] : records_) {
      if (r.version.is_of_a_record()) all.push_back({name, lines_[name].empty()});
    }
    return all;
  }

 private:
  struct stand {
    contender who;
    contender_data says;
    std::vector<alarm> alarms{};
  };

  struct request {
    std::string name;
    contender who;
    contender_data says;
  };

  bool ends_watch() { return cannot_watch_one > 0 && cannot_watch_one-- > 0; }
  entered add(const std::string& name, contender who, contender_data says) {
    who.node = std::to_string(++last_);
    if (names_by_owner) who.node = to_string(who.owner) + (who.raises ? "+" : "");
    says.fence = static_cast<std::uint64_t>(last_);
    says.session = session;
    lines_[name].push_back({who, says});
    entered in;
    in.node = who.node;
    in.fence = says.fence;
    in.session = session;
    return in;
  }
  stand* find(std::string_view name, const std::string& node) {
    for (auto& at : lines_[std::string(name)]) {
      if (at.who.node == node) return &at;
    }
    return nullptr;
  }
  /// As in etcd: an owner that enters again does so under the same key.
  static bool is_same_place(const contender& a, const contender& b) {
    return a.owner == b.owner && a.raises == b.raises;
  }
  std::vector<contender> line_of(std::string_view name) {
    std::vector<contender> all;
    const auto record = records_.find(std::string(name));
    if (record != records_.end() && record->second.version.is_of_a_record()) {
      all.emplace_back().kind = holdfast::store::kind::latch;
    }
    for (const auto& at : lines_[std::string(name)]) all.push_back(at.who);
    return all;
  }
  bool take_out(std::string_view name, std::span<const std::string> nodes) {
    std::vector<alarm> calls;
    bool any = false;
    {
      const std::lock_guard guard{mutex_};
      std::erase_if(lines_[std::string(name)], [&](stand& at) {
        const bool goes = std::find(nodes.begin(), nodes.end(), at.who.node) != nodes.end();
        if (goes) calls.insert(calls.end(), at.alarms.begin(), at.alarms.end());
        any |= goes;
        return goes;
      });
    }
    for (const auto& call : calls) call();
    return any;
  }

  holdfast::clock& clock_;
  const holdfast::store::capabilities can_;
  const std::string url_ = "fake:";
  const std::string peer_ = "me";
  std::mutex mutex_;
  std::map<std::string, std::vector<stand>> lines_;
  std::map<std::string, versioned> records_;
  std::vector<request> late_;
  std::vector<request> late_leaves_;
  std::int64_t last_ = 0;
};

}  // namespace kernel_test
