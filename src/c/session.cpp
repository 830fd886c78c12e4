#include "c/session.hpp"

using namespace holdfast::c_abi;

extern "C" {

int holdfast_open(const char* url, const holdfast_session_options* options,
                  holdfast_session** session, holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(session, "session");
    const auto given = read(options, "options");
    if (given.lock_order != 0 || given.find_deadlocks != 0) {
      refuse(holdfast::errc::unsupported,
             "options: lock_order and find_deadlocks look at locks that belong to a thread, and no "
             "lock of this interface does. Leave both 0, and take several names with a multi_lock");
    }
    holdfast::session_options wanted;
    if (given.lease_ms != 0) wanted.lease = std::chrono::milliseconds(given.lease_ms);
    if (given.store_timeout_ms != 0) {
      wanted.store_timeout = std::chrono::milliseconds(given.store_timeout_ms);
    }
    wanted.name_prefix = text_or_nothing(given.name_prefix);
    give(&there,
         std::make_shared<session_handle>(holdfast::open(text_of(url, "url"), std::move(wanted))));
  });
}

int holdfast_session_url(holdfast_session* session, char* text, uint64_t room,
                         holdfast_error* why) {
  return guarded(why, [&] {
    const std::string url = session_visit(session).itself().url();
    (void)out(text, "text");
    if (room == 0 || !put_text(text, room, url))
      refuse(holdfast::errc::invalid_argument,
             "text: the URL needs " + std::to_string(url.size() + 1) + " bytes of room");
  });
}

int holdfast_show(holdfast_session* session, const char* name, holdfast_name_info* info,
                  holdfast_error* why) {
  return guarded(why, [&] {
    out_struct there(info, "info");
    const auto found = session_of(session).show(text_of(name, "name"));
    there->capacity = found.capacity;
    there->remaining = found.remaining;
    there->holders = static_cast<uint32_t>(found.holders.size());
    there->waiters = static_cast<uint32_t>(found.waiters.size());
    there->last_fence = found.last_fence;
    put_text(there->kind, found.kind);
    if (!found.holders.empty()) put_text(there->holder, found.holders.front().short_id);
  });
}

int holdfast_force_release(holdfast_session* session, const char* name, const char* short_id,
                           uint64_t* removed, holdfast_error* why) {
  return guarded(why, [&] {
    const auto from = session_of(session);
    if (short_id != nullptr && *short_id == 0) {
      refuse(holdfast::errc::invalid_argument,
             "short_id is empty: what the store shows without one cannot be taken away by itself. "
             "Pass NULL (Python: None, Node: null) to take the lock away from all holders");
    }
    const auto count = from.force_release(text_of(name, "name"), text_or_nothing(short_id));
    if (removed != nullptr) *removed = count;
  });
}

}  // extern "C"
