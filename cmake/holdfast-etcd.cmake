# holdfast_etcd_messages(): compiles src/store/etcd/etcd.proto into holdfast::etcd. Made code is not ours to warn about.
function(holdfast_etcd_messages)
  if(NOT GrpcClient_PROTOC)
    message(FATAL_ERROR "holdfast: the etcd store needs protoc (Debian: protobuf-compiler), or HOLDFAST_ETCD=OFF.")
  endif()
  set(made "${PROJECT_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${made}/store/etcd")
  set(proto "${PROJECT_SOURCE_DIR}/src/store/etcd/etcd.proto")
  add_custom_command(
    OUTPUT "${made}/store/etcd/etcd.pb.cc" "${made}/store/etcd/etcd.pb.h"
    COMMAND "${GrpcClient_PROTOC}" "--proto_path=${PROJECT_SOURCE_DIR}/src" "--cpp_out=${made}" "${proto}"
    DEPENDS "${proto}" VERBATIM)
  target_sources(holdfast_etcd PRIVATE "${made}/store/etcd/etcd.pb.cc" "${made}/store/etcd/etcd.pb.h")
  target_include_directories(holdfast_etcd SYSTEM PRIVATE "${made}")
  set_source_files_properties("${made}/store/etcd/etcd.pb.cc" PROPERTIES COMPILE_OPTIONS "-w")
endfunction()
