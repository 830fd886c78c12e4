#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <atomic>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <mutex>
#include <string>
#include <vector>

#include "store/etcd/calls.hpp"
#include "store/etcd/options.hpp"

/// gRPC itself, which is slow to compile: only members.cpp, channel.cpp and watches.cpp include
/// this.
namespace holdfast::store::etcd {

using generic_stub = grpc::TemplatedGenericStub<message, message>;

/// The members of the cluster; the session talks to one of them as long as it answers. Thread-safe.
class members {
 public:
  explicit members(const etcd_options& o);

  std::size_t now_with() const noexcept { return current_.load() % stubs_.size(); }
  generic_stub& stub(std::size_t member) { return stubs_[member]; }
  /// That member did not answer: moves on to the next one.
  void go_on_from(std::size_t member) noexcept;
  /// That member did not answer a request of `asked` until `until`: moves on to the next one. A
  /// stream to the member may be silent as well; its owner gives the stream up if nothing has
  /// arrived over it in the second half of that time.
  void leave_silent(std::size_t member, boot_time asked, boot_time until) noexcept;
  /// Sets the callback for silent members, before the first call. It is called only if there is
  /// another member.
  void on_silence(std::function<void(std::size_t member, boot_time since)> told) {
    is_silent_ = std::move(told);
  }
  /// Empty without a user. Requests a token if there is none.
  result<std::string> token(boot_time until);
  void forget_token(const std::string& which);

  grpc::Status ask(std::size_t member, const char* method, const std::string& token,
                   const message& request, message& answer, boot_time until);

  const etcd_options& options() const noexcept { return options_; }

 private:
  const etcd_options options_;
  std::vector<generic_stub> stubs_;
  std::atomic<std::size_t> current_{0};
  std::function<void(std::size_t, boot_time)> is_silent_ = [](std::size_t, boot_time) {};
  std::mutex mutex_;
  std::string token_;
};

/// True if the member is away, or does not see a leader: another member may do better.
bool is_away(const grpc::Status& s);
/// True if the member has not answered in time.
bool was_silent(const grpc::Status& s);
/// True if a new token has to be requested.
bool is_stale_token(const grpc::Status& s);
/// The failure for a status code, with advice.
failure explain(const grpc::Status& s, const etcd_options& o);

}  // namespace holdfast::store::etcd
