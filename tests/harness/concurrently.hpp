#pragma once

#include <future>
#include <holdfast/error.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>
#include <memory>
#include <optional>
#include <utility>

namespace harness {

/// What a thread of its own does.
template <class Result>
class any_job {
 public:
  any_job() = default;
  any_job(const any_job&) = delete;
  any_job& operator=(const any_job&) = delete;
  virtual ~any_job() = default;
  virtual Result run() = 0;
};

template <class Result, class Job>
class one_job final : public any_job<Result> {
 public:
  explicit one_job(Job&& job) : job_(std::move(job)) {}
  Result run() override { return job_(); }

 private:
  Job job_;
};

template <class Result>
std::future<Result> begin_job(std::unique_ptr<any_job<Result>> job) {
  return std::async(std::launch::async, [job = std::move(job)] { return job->run(); });
}
// Most jobs have one of these results.
extern template std::future<void> begin_job(std::unique_ptr<any_job<void>>);
extern template std::future<bool> begin_job(std::unique_ptr<any_job<bool>>);
extern template std::future<holdfast::errc> begin_job(std::unique_ptr<any_job<holdfast::errc>>);
extern template std::future<holdfast::lease> begin_job(std::unique_ptr<any_job<holdfast::lease>>);
extern template std::future<std::optional<holdfast::lease>> begin_job(
    std::unique_ptr<any_job<std::optional<holdfast::lease>>>);
extern template std::future<holdfast::multi_lease> begin_job(
    std::unique_ptr<any_job<holdfast::multi_lease>>);

/// std::async(std::launch::async, job): the future waits for the job. Of std::async the compiler
/// makes more than 200 functions for each job. Of this it makes a few for each job, and the rest
/// for each type of result.
template <class Job>
auto concurrently(Job job) {
  using result = decltype(job());
  return begin_job(std::unique_ptr<any_job<result>>(new one_job<result, Job>(std::move(job))));
}

}  // namespace harness
