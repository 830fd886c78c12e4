#include <absl/synchronization/mutex.h>
#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/grpcpp.h>

int main() {
  absl::Mutex one_at_a_time;
  const absl::MutexLock locked(&one_at_a_time);
  google::protobuf::BytesValue message;
  message.set_value("x");
  const auto channel = grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials());
  return channel && message.ByteSizeLong() > 0 ? 0 : 1;
}
