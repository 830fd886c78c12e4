#include "harness/concurrently.hpp"

namespace harness {

template std::future<void> begin_job(std::unique_ptr<any_job<void>>);
template std::future<bool> begin_job(std::unique_ptr<any_job<bool>>);
template std::future<holdfast::errc> begin_job(std::unique_ptr<any_job<holdfast::errc>>);
template std::future<holdfast::lease> begin_job(std::unique_ptr<any_job<holdfast::lease>>);
template std::future<std::optional<holdfast::lease>> begin_job(
    std::unique_ptr<any_job<std::optional<holdfast::lease>>>);
template std::future<holdfast::multi_lease> begin_job(
    std::unique_ptr<any_job<holdfast::multi_lease>>);

}  // namespace harness
