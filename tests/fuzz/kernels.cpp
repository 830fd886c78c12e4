#include <array>
#include <holdfast/store/queue_inbox.hpp>
#include <holdfast/store/state_store.hpp>

#include "family/state_family.hpp"
#include "fuzz/input.hpp"

// A record that somebody else wrote, and every command to it: `time steps` on the first line, the
// record on the rest.
namespace {

using namespace holdfast::store;

/// One record, which is the same for all names.
class one_record final : public state_store {
 public:
  one_record(std::string record, moment now) : record_(std::move(record)), now_(now) {}

  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return url_; }
  holdfast::status transact(std::string_view, transition& change) override {
    const std::string* const next = change.apply(record_, now_);
    if (next != nullptr) record_ = std::string(*next);
    return holdfast::done{};
  }
  holdfast::result<std::vector<entry>> entries() override {
    return std::vector<entry>{{"m", record_}};
  }
  holdfast::result<moment> time() override { return now_; }
  bool tell(const notification&) override { return true; }
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }

 private:
  std::string record_;
  const moment now_;
  capabilities can_;
  const std::string url_ = "fuzz:";
  queue_inbox inbox_{"peer", holdfast::real_clock()};
};

constexpr std::int64_t now = 1'700'000'000'000'000;

constexpr unsigned kinds = static_cast<unsigned>(kind::condition_variable) + 1;
constexpr unsigned verbs = static_cast<unsigned>(permits_verb::notify) + 1;

// The numbers of kinds and verbs have no common divisor: each kind meets each verb.
void ask(session_store& s, unsigned char what) {
  permits_command c;
  c.verb = static_cast<permits_verb>(what % verbs);
  c.owner = {what / verbs % 3, 1};
  c.kind = static_cast<kind>(what % kinds);
  c.capacity = 1 + what / kinds % 4U;
  c.weight = 1 + what % 2U;
  c.wait = what % 3 == 0;
  c.lease_us = c.queue_lease_us = 1'000'000;
  c.lingers = what % 5 == 0;
  c.outlives_session = what % 11 == 3;
  c.priority = what % 13 == 4;
  if (what % 17 == 5) c.secret = {what, 2};
  c.peer = "peer", c.note = "host 1 fuzz";
  (void)s.permits("m", c);
  countdown_command l;
  l.verb = static_cast<countdown_verb>(what % 5);
  l.owner = c.owner;
  l.count = 3, l.drop = 1, l.queue_lease_us = l.keep_us = 1'000'000, l.peer = "peer";
  (void)s.countdown("m", l);
  std::array choices{bucket_choice{"a", {1, 1, 1'000, 10}}, bucket_choice{"b", {2, 3, 7, 9}}};
  if (what % 4 == 2) choices[0].due_at = now + what * 10 - 500;
  rate_command r;
  r.verb = static_cast<rate_verb>(what % 3);
  r.owner = c.owner;
  r.tokens = 1 + what % 3;
  r.ahead_us = what % 2 * 1'000;
  r.version = what % 2U;
  r.buckets = choices;
  (void)s.rate("m", r);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto rest = fuzz::text_of(data, size);
  const auto steps = fuzz::take_until(rest, '\n').substr(0, 20);
  const auto s = holdfast::family::over(
      std::make_unique<one_record>(std::string(rest), moment{now, now, steps.size() % 2 == 0}));
  for (const char step : steps) ask(*s, static_cast<unsigned char>(step));
  (void)s->names();
  return 0;
}
