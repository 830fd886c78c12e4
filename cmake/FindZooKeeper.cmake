# FindZooKeeper: ZooKeeper's C client for programs with threads, which has no CMake or pkg-config file.
# Defines ZooKeeper::mt and ZooKeeper_FOUND.
find_path(ZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZooKeeper_LIBRARY zookeeper_mt)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZooKeeper REQUIRED_VARS ZooKeeper_LIBRARY ZooKeeper_INCLUDE_DIR)
mark_as_advanced(ZooKeeper_INCLUDE_DIR ZooKeeper_LIBRARY)
if(ZooKeeper_FOUND AND NOT TARGET ZooKeeper::mt)
  add_library(ZooKeeper::mt UNKNOWN IMPORTED)
  # THREADED: without it the header does not declare the blocking calls.
  set_target_properties(ZooKeeper::mt PROPERTIES IMPORTED_LOCATION "${ZooKeeper_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ZooKeeper_INCLUDE_DIR}" INTERFACE_COMPILE_DEFINITIONS THREADED)
endif()
