#include <mutex>
#include <shared_mutex>
#include <type_traits>

#include "conformance/cell.hpp"

// The named requirements of the standard ([thread.req.lockable], [thread.mutex.requirements]) as
// concepts, and the real types in the standard's guards.
namespace conformance {
namespace {

using namespace std::chrono_literals;

template <class L>
concept basic_lockable = requires(L& m) {
  m.lock();
  m.unlock();
};
template <class L>
concept is_lockable = basic_lockable<L> && requires(L& m) {
  { m.try_lock() } -> std::same_as<bool>;
};
template <class L>
concept timed_lockable = is_lockable<L> && requires(L& m, std::chrono::steady_clock::time_point t,
                                                    std::chrono::system_clock::time_point w) {
  { m.try_lock_for(1ms) } -> std::same_as<bool>;
  { m.try_lock_for(std::chrono::duration<double>(0.5)) } -> std::same_as<bool>;
  { m.try_lock_until(t) } -> std::same_as<bool>;
  { m.try_lock_until(w) } -> std::same_as<bool>;
};
template <class L>
concept shared_timed_lockable = requires(L& m, std::chrono::steady_clock::time_point t) {
  m.lock_shared();
  m.unlock_shared();
  { m.try_lock_shared() } -> std::same_as<bool>;
  { m.try_lock_shared_for(1ms) } -> std::same_as<bool>;
  { m.try_lock_shared_until(t) } -> std::same_as<bool>;
};
template <class L>
concept stays_where_it_is = !std::is_copy_constructible_v<L> && !std::is_move_constructible_v<L>;

static_assert(timed_lockable<holdfast::mutex> && stays_where_it_is<holdfast::mutex>);
static_assert(timed_lockable<holdfast::fair_mutex> && stays_where_it_is<holdfast::fair_mutex>);
static_assert(timed_lockable<holdfast::recursive_mutex>);
static_assert(timed_lockable<holdfast::shared_mutex>);
static_assert(shared_timed_lockable<holdfast::shared_mutex>);
static_assert(!shared_timed_lockable<holdfast::mutex>);
static_assert(noexcept(std::declval<holdfast::mutex&>().unlock()),
              "unlock() that throws inside a guard ends the program");
static_assert(noexcept(std::declval<holdfast::fair_mutex&>().unlock()));
static_assert(noexcept(std::declval<holdfast::recursive_mutex&>().unlock()));
static_assert(noexcept(std::declval<holdfast::shared_mutex&>().unlock()));
static_assert(noexcept(std::declval<holdfast::shared_mutex&>().unlock_shared()));

static_assert(std::is_nothrow_move_constructible_v<holdfast::lease>);
static_assert(std::is_nothrow_move_assignable_v<holdfast::lease>);
static_assert(!std::is_copy_constructible_v<holdfast::lease>);
static_assert(std::is_nothrow_destructible_v<holdfast::lease>);
static_assert(noexcept(std::declval<holdfast::lease&>().release()));
static_assert(std::is_copy_constructible_v<holdfast::session>);

class guards : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, guards, testing::ValuesIn(cells({"shared_mutex"})), cell_name);

TEST_P(guards, of_the_standard_work_with_all_lockables_together) {
  holdfast::mutex a{here_, "a"};
  holdfast::fair_mutex b{here_, "b"};
  holdfast::recursive_mutex c{here_, "c"};
  holdfast::shared_mutex d{here_, "d"};
  std::shared_mutex e;  // cell.cpp: no mutex is held when the observer is called
  {
    const std::scoped_lock all{a, b, c, d, e};
    EXPECT_EQ(here_.names(), (std::vector<std::string>{"a", "b", "c", "d"}));
  }
  EXPECT_TRUE(here_.names().empty());
}

TEST_P(guards, deadlines_of_any_clock_are_understood) {
  holdfast::shared_mutex m{here_, name_};
  std::unique_lock writer{m, std::chrono::steady_clock::now() + 1h};
  EXPECT_TRUE(writer.owns_lock());
  writer.unlock();
  std::shared_lock reader{m, std::chrono::system_clock::now() + 1h};
  EXPECT_TRUE(reader.owns_lock());
  EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() - 1h));
  EXPECT_FALSE(m.try_lock_until(std::chrono::steady_clock::time_point::min()));
  EXPECT_FALSE(m.try_lock_until(holdfast::boot_clock::now()));
}

TEST_P(guards, shared_locks_are_held_together_and_exclude_a_writer) {
  holdfast::shared_mutex m{here_, name_};
  holdfast::shared_mutex other{another(), name_};
  std::shared_lock one{m};
  std::shared_lock two{other, 1h};
  EXPECT_TRUE(two.owns_lock());
  std::unique_lock writer{other, std::defer_lock};
  one.unlock();
  EXPECT_FALSE(writer.try_lock());
  two.unlock();
  EXPECT_TRUE(writer.try_lock());
}

}  // namespace
}  // namespace conformance
