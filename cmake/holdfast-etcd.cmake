# holdfast_etcd_messages(): compiles src/store/etcd/etcd.proto into holdfast::etcd, without warnings about the generated code.
function(holdfast_etcd_messages)
  if(NOT GrpcClient_PROTOC)
    message(FATAL_ERROR "holdfast: the etcd store needs protoc (Debian: protobuf-compiler), or HOLDFAST_ETCD=OFF.")
  endif()
  if(NOT GrpcClient_grpc++_LIBRARY MATCHES "\\.so$")  # static libraries list what they need in their .pc files
    set_property(GLOBAL PROPERTY HOLDFAST_PC_etcd grpc++ protobuf)
    set_property(GLOBAL PROPERTY HOLDFAST_PC_LIBS_etcd "")
  endif()
  set(made "${PROJECT_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${made}/etcd")
  set(proto "${PROJECT_SOURCE_DIR}/src/store/etcd/etcd.proto")
  add_custom_command(
    OUTPUT "${made}/etcd/etcd.pb.cc" "${made}/etcd/etcd.pb.h"
    COMMAND "${GrpcClient_PROTOC}" "--proto_path=${PROJECT_SOURCE_DIR}/src/store" "--cpp_out=${made}" "${proto}"
    DEPENDS "${proto}" VERBATIM)
  target_sources(holdfast_etcd PRIVATE "${made}/etcd/etcd.pb.cc" "${made}/etcd/etcd.pb.h")
  target_include_directories(holdfast_etcd SYSTEM PRIVATE "${made}")
  set_source_files_properties("${made}/etcd/etcd.pb.cc" PROPERTIES COMPILE_OPTIONS "-w")
endfunction()

# holdfast_etcd_baseline(): the baseline with which holdfast-bench compares etcd, over the same messages.
function(holdfast_etcd_baseline)
  if(TARGET holdfast_etcd)
    target_link_libraries(holdfast_bench_parts PRIVATE GrpcClient::all)
    target_include_directories(holdfast_bench_parts SYSTEM PRIVATE "${PROJECT_BINARY_DIR}/generated")
    target_compile_definitions(holdfast_bench_parts PRIVATE HOLDFAST_BENCH_ETCD)
    add_dependencies(holdfast_bench_parts holdfast_etcd)
  endif()
endfunction()
