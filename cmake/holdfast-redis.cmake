# holdfast_redis_scripts(): puts src/store/redis/*.lua into holdfast::redis, each with its SHA-1, so that the library needs
# no files beside it and no SHA-1 of its own. Changed scripts are taken in by the next build.
function(holdfast_redis_scripts)
  if(NOT TARGET holdfast_redis)
    return()
  endif()
  # Some have others inside.
  foreach(name IN ITEMS mutex barrier_condition late after head permits countdown rate redlock redisson redisson_rw redisson_latch
          setnx acquire_many)
    set(file "${PROJECT_SOURCE_DIR}/src/store/redis/${name}.lua")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" HOLDFAST_${name}_TEXT)
    foreach(part IN ITEMS mutex barrier_condition late after head permits rate)
      string(REPLACE "@${part}.lua@" "${HOLDFAST_${part}_TEXT}" HOLDFAST_${name}_TEXT "${HOLDFAST_${name}_TEXT}")
    endforeach()
    string(SHA1 HOLDFAST_${name}_SHA "${HOLDFAST_${name}_TEXT}")
  endforeach()
  set(made "${PROJECT_BINARY_DIR}/generated/redis_scripts.cpp")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/redis-scripts.cpp.in" "${made}" @ONLY)
  target_sources(holdfast_redis PRIVATE "${made}")
endfunction()

# holdfast_redis_floors(): what holdfast-bench compares the Redis store with is written over hiredis, if that is there.
function(holdfast_redis_floors)
  find_package(PkgConfig QUIET)
  if(NOT TARGET holdfast_redis OR NOT TARGET holdfast_bench_parts OR NOT PkgConfig_FOUND)
    return()
  endif()
  pkg_check_modules(HOLDFAST_BENCH_HIREDIS QUIET IMPORTED_TARGET hiredis)
  if(HOLDFAST_BENCH_HIREDIS_FOUND)
    target_link_libraries(holdfast_bench_parts PRIVATE PkgConfig::HOLDFAST_BENCH_HIREDIS)
    target_compile_definitions(holdfast_bench_parts PRIVATE HOLDFAST_BENCH_REDIS)
  endif()
endfunction()
