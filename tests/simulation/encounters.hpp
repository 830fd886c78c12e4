#pragma once

#include "simulation/plan.hpp"

namespace simulation {

/// From this seed on, half of the seeds of some themes arrange encounters of two events: a change
/// and a lock that was taken away, a release and a renewal, an outage and the next one.
inline constexpr std::uint64_t encounter_seeds = std::uint64_t{1} << 42;
/// From this seed on, plans also arrange leases that end by themselves, and outages shorter than a
/// lease.
inline constexpr std::uint64_t bearing_seeds = std::uint64_t{1} << 43;
/// From this seed on, plans also arrange turns within a process.
inline constexpr std::uint64_t turn_seeds = std::uint64_t{1} << 44;
/// From this seed on, plans also arrange the uses of a lock's terms.
inline constexpr std::uint64_t term_seeds = std::uint64_t{1} << 45;
/// From this seed on, plans also arrange what happens to one of several names, nodes or waiters.
inline constexpr std::uint64_t several_seeds = std::uint64_t{1} << 46;
/// From this seed on, plans also arrange what calls, tokens and observers are told.
inline constexpr std::uint64_t news_seeds = std::uint64_t{1} << 47;
/// From this seed on, plans also arrange processes with different terms, and calls that use two
/// sessions.
inline constexpr std::uint64_t unlike_seeds = std::uint64_t{1} << 48;
/// From this seed on, steps of any plan also use further forms of the same calls, processes name
/// further options, and what is shown is judged in full.
inline constexpr std::uint64_t form_seeds = std::uint64_t{1} << 49;
/// From this seed on, threads of any plan also rest, so that what is left behind is seen.
inline constexpr std::uint64_t resting_seeds = std::uint64_t{1} << 50;
/// From this seed on, names of any plan are also used as another kind, lock objects of one process
/// have other leases than its others, and waits last longer than a store is silent.
inline constexpr std::uint64_t mixed_seeds = std::uint64_t{1} << 51;
/// From this seed on, plans also arrange what follows: another thread on other terms, the end of a
/// session after a release that was not confirmed, the end of a wait in a silence.
inline constexpr std::uint64_t following_seeds = std::uint64_t{1} << 52;
/// From this seed on, plans also arrange what a thread meets beside others: tries beside a former
/// writer, readers without a thread beside a writer, tokens over connections that break.
inline constexpr std::uint64_t beside_seeds = std::uint64_t{1} << 53;
/// From this seed on, plans also arrange what remains of something else: of a process that died as
/// a waiter, of an attempt that arrives late, of an answer that was lost.
inline constexpr std::uint64_t remaining_seeds = std::uint64_t{1} << 54;
/// From this seed on, each process names the members of a multi_lock in an order of its own, what
/// was taken from a cache is judged by the answer, and a server with scripts refuses what arrives
/// too late.
inline constexpr std::uint64_t ordering_seeds = std::uint64_t{1} << 55;
/// From this seed on, what the sessions ask and hear is noted, and judges compare calls with it.
inline constexpr std::uint64_t accounting_seeds = std::uint64_t{1} << 56;
/// From this seed on, a third of the plans are plans of earlier seeds, and others have much of one
/// trouble: queues of unequal waiters, many lost messages, long outages, late answers.
inline constexpr std::uint64_t blended_seeds = std::uint64_t{1} << 57;
/// From this seed on, servers answer some requests with errors while their connections stay, and
/// what a session leaves open is judged: transactions, listeners, files.
inline constexpr std::uint64_t refusing_seeds = std::uint64_t{1} << 59;
/// From this seed on, a standby takes over while its former primary takes writes, consensus stores
/// are restored from backups, and what a call costs beside trouble is judged.
inline constexpr std::uint64_t dividing_seeds = std::uint64_t{1} << 60;
/// The first seed of a search.
inline constexpr std::uint64_t fresh_seeds = dividing_seeds;
/// The number of the seed whose plan it has: an earlier one, or its own.
std::uint64_t number_of_its_plan(std::uint64_t seed) noexcept;
/// Each of these functions changes the plan; false if it has nothing of its kind for this plan.
bool arrange_encounters(plan& p);
bool arrange_endings_of_leases(plan& p);
bool arrange_turns(plan& p);
bool arrange_terms(plan& p);
bool arrange_several(plan& p);
bool arrange_news(plan& p);
bool arrange_unlike(plan& p);
/// Which calls and options are used, and in some plans what happens when waits end.
void mix_forms(plan& p);
/// Which objects use a name, and how long those wait that a silent store keeps.
void mix_objects(plan& p);
/// What follows a hold, a change, a release or a silence.
void mix_followers(plan& p);
/// What a thread meets beside others.
void mix_neighbours(plan& p);
/// What remains of a call, a waiter or a transaction.
void mix_remains(plan& p);
/// In which order several are named, and what comes too late.
void mix_orders(plan& p);
/// Leases, grants and errors that only the answers to the process's requests can judge.
void mix_accounts(plan& p);
/// Much of one trouble in ordinary use.
void mix_troubles(plan& p);
/// Answers that are errors.
void mix_refusals(plan& p);
/// Stores whose servers do not know the same.
void mix_divisions(plan& p);

}  // namespace simulation
