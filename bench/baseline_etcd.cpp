// Only if gRPC was found at build time.
#ifdef HOLDFAST_BENCH_ETCD
#include <etcd/etcd.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/sync_stream.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

#include "bench/subject.hpp"

// The recipe of etcd's own Mutex, as people write it over gRPC: one transaction puts a key with a
// lease and reads the keys before it, one watch on the one before, one delete. It handles no lost
// replies, no lease that ends, no deadline.
namespace bench {
namespace {

namespace wire = holdfast::store::etcd::wire;
using grpc::internal::RpcMethod;

bool is_etcd(std::string_view url) { return scheme_of(url) == "etcd"; }

template <class Answer, class Request>
Answer call(grpc::ChannelInterface& to, const char* method, const Request& request) {
  grpc::ClientContext context;
  Answer answer;
  const auto s = grpc::internal::BlockingUnaryCall(&to, RpcMethod(method, RpcMethod::NORMAL_RPC),
                                                   &context, request, &answer);
  if (!s.ok()) throw std::runtime_error{std::string{method} + ": " + s.error_message()};
  return answer;
}

/// One stream for one handle.
class watcher {
 public:
  explicit watcher(grpc::ChannelInterface& to)
      : stream_{grpc::internal::ClientReaderWriterFactory<
            wire::WatchRequest, wire::WatchResponse>::Create(&to,
                                                             RpcMethod("/etcdserverpb.Watch/Watch",
                                                                       RpcMethod::BIDI_STREAMING),
                                                             &context_)} {}
  ~watcher() { context_.TryCancel(); }

  void begin(const std::string& key) {
    wire::WatchRequest request;
    request.mutable_create_request()->set_key(key);
    request.mutable_create_request()->set_watch_id(++last_);
    stream_->Write(request);
    until([](const auto& heard) { return heard.created(); });
  }
  void until_changed() {
    until([](const auto& heard) { return heard.events_size() > 0; });
    end();
  }
  void end() {
    wire::WatchRequest request;
    request.mutable_cancel_request()->set_watch_id(last_);
    stream_->Write(request);
  }

 private:
  template <class Condition>
  void until(Condition come) {
    wire::WatchResponse heard;
    while (stream_->Read(&heard)) {
      if (heard.watch_id() == last_ && come(heard)) return;
    }
    throw std::runtime_error{"the watch ended"};
  }
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::WatchRequest, wire::WatchResponse>> stream_;
  std::int64_t last_ = 0;
};

class etcd_grip final : public handle {
 public:
  etcd_grip(grpc::ChannelInterface& to, std::int64_t lease, unsigned lock)
      : to_{to}, lease_{lease}, prefix_{"/floor-" + std::to_string(lock) + "/"} {
    static std::atomic<unsigned> number{0};
    key_ = prefix_ + std::to_string(::getpid()) + "-" + std::to_string(++number);
  }

  void lock() override {
    wire::TxnRequest t;
    auto& fresh = *t.add_compare();
    fresh.set_key(key_);
    fresh.set_target(1);
    fresh.set_create_revision(0);
    auto& put = *t.add_success()->mutable_request_put();
    put.set_key(key_);
    put.set_lease(lease_);
    *t.add_success()->mutable_request_range() = everybody();
    const auto in = call<wire::TxnResponse>(to_, "/etcdserverpb.KV/Txn", t);
    for (auto before = ahead_of_me(in.responses(1).response_range()); !before.empty();) {
      if (!watch_) watch_ = std::make_unique<watcher>(to_);
      watch_->begin(before);
      const auto gone = before;
      before = ahead_of_me(call<wire::RangeResponse>(to_, "/etcdserverpb.KV/Range", everybody()));
      if (before != gone) {
        watch_->end();
        continue;
      }
      watch_->until_changed();
      before = ahead_of_me(call<wire::RangeResponse>(to_, "/etcdserverpb.KV/Range", everybody()));
    }
  }
  void unlock() override {
    wire::DeleteRangeRequest request;
    request.set_key(key_);
    (void)call<wire::DeleteRangeResponse>(to_, "/etcdserverpb.KV/DeleteRange", request);
  }

 private:
  wire::RangeRequest everybody() const {
    wire::RangeRequest r;
    r.set_key(prefix_);
    r.set_range_end(prefix_.substr(0, prefix_.size() - 1) + "0");
    r.set_keys_only(true);
    r.set_sort_order(1);
    r.set_sort_target(2);
    return r;
  }
  std::string ahead_of_me(const wire::RangeResponse& all) const {
    std::string before;
    for (const auto& kv : all.kvs()) {
      if (kv.key() == key_) break;
      before = kv.key();
    }
    return before;
  }

  grpc::ChannelInterface& to_;
  const std::int64_t lease_;
  const std::string prefix_;
  std::string key_;
  std::unique_ptr<watcher> watch_;
};

class etcd_locks final : public subject {
 public:
  explicit etcd_locks(const place& at) {
    const std::string rest = at.url.substr(at.url.find("//") + 2);
    to_ = grpc::CreateChannel(rest.substr(0, rest.find_first_of(",/?")),
                              grpc::InsecureChannelCredentials());
    wire::LeaseGrantRequest request;
    request.set_ttl(600);
    lease_ = call<wire::LeaseGrantResponse>(*to_, "/etcdserverpb.Lease/LeaseGrant", request).id();
  }
  ~etcd_locks() override {
    wire::LeaseRevokeRequest request;
    request.set_id(lease_);
    (void)call<wire::LeaseRevokeResponse>(*to_, "/etcdserverpb.Lease/LeaseRevoke", request);
  }
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<etcd_grip>(*to_, lease_, lock);
  }

 private:
  std::shared_ptr<grpc::Channel> to_;
  std::int64_t lease_ = 0;
};

std::unique_ptr<subject> open_recipe(const place& at) { return std::make_unique<etcd_locks>(at); }

}  // namespace

const subject_kind etcd_recipe_baseline{
    .name = "etcd_recipe",
    .counts_operations = false,
    .fits = is_etcd,
    .across_processes = always,
    .prepare = nothing,
    .open = open_recipe,
};

}  // namespace bench

#endif
