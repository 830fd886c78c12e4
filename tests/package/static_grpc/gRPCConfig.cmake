# What vcpkg's and Conan's gRPC have: a target that knows the whole list. (Debian's asks for programs that nobody needs here.)
# pkg-config is asked once: it reads the hundred files of gRPC's libraries for half a second, and pkg_check_modules() would ask
# twenty-five times.
find_package(PkgConfig REQUIRED)
execute_process(COMMAND "${PKG_CONFIG_EXECUTABLE}" --libs-only-l grpc++ protobuf
  OUTPUT_VARIABLE static_grpc_names OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(static_grpc_names UNIX_COMMAND "${static_grpc_names}")
set(static_grpc_libraries "")
foreach(name IN LISTS static_grpc_names)
  string(REGEX REPLACE "^-l" "" name "${name}")
  find_library(static_grpc_${name} ${name})
  if(static_grpc_${name})
    list(APPEND static_grpc_libraries "${static_grpc_${name}}")
  else()  # there is only a shared one
    list(APPEND static_grpc_libraries ${name})
  endif()
endforeach()
add_library(gRPC::grpc++ INTERFACE IMPORTED)
set_target_properties(gRPC::grpc++ PROPERTIES INTERFACE_LINK_LIBRARIES "${static_grpc_libraries}")
