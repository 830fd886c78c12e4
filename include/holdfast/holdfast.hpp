#pragma once

#include <holdfast/cpp20.hpp>

/// Everything a program needs. Start reading with mutex.hpp, then lease.hpp.
#include <holdfast/admission.hpp>
#include <holdfast/async.hpp>
#include <holdfast/barrier.hpp>
#include <holdfast/both.hpp>
#include <holdfast/condition_variable.hpp>
#include <holdfast/election.hpp>
#include <holdfast/error.hpp>
#include <holdfast/event_log.hpp>
#include <holdfast/fair_mutex.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_order.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/metrics_text.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/rate_limiter.hpp>
#include <holdfast/recursive_mutex.hpp>
#include <holdfast/redlock.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/session.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/with_lock.hpp>
