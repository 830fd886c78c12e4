# Install rules, the CMake package (also usable from the build tree) and the pkg-config files.
include(CMakePackageConfigHelpers)

set(HOLDFAST_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")
get_property(components GLOBAL PROPERTY HOLDFAST_COMPONENTS)
if(HOLDFAST_DRIVERS)
  list(APPEND components shared)
endif()
if(HOLDFAST_PROMETHEUS)
  list(APPEND components prometheus)
endif()

# One export set for each component: a program that asks for one store needs only that store's client.
foreach(component IN LISTS components)
  get_property(target GLOBAL PROPERTY HOLDFAST_TARGET_${component})
  set(headers "")
  if(component MATCHES "^(core|c)$")
    set(headers FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  install(TARGETS ${target} EXPORT holdfast-${component}-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
    ${headers})
  install(EXPORT holdfast-${component}-targets NAMESPACE holdfast:: DESTINATION "${HOLDFAST_PACKAGE_DIR}")
  export(EXPORT holdfast-${component}-targets NAMESPACE holdfast::
    FILE "${PROJECT_BINARY_DIR}/holdfast-${component}-targets.cmake")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/include/holdfast/prometheus.hpp" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/holdfast")
if(HOLDFAST_DRIVERS)
  # Each driver is in the folder beside the library, which looks for it nowhere else.
  get_property(loaded GLOBAL PROPERTY HOLDFAST_LOADED_STORES)
  foreach(store IN LISTS loaded)
    install(TARGETS holdfast_driver_${store} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/${HOLDFAST_DRIVER_FOLDER}")
  endforeach()
endif()
if(TARGET holdfast_tool)
  install(TARGETS holdfast_tool holdfast_faultproxy RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  holdfast_install_manual()
  install(FILES "${PROJECT_SOURCE_DIR}/packaging/NOTICES" DESTINATION "${CMAKE_INSTALL_DOCDIR}")  # of compiled-in code
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# Tells the config file, for each store, which client to look for, or why the store was not built.
get_target_property(type holdfast_core TYPE)
set(HOLDFAST_STORE_FACTS "")
foreach(store IN LISTS HOLDFAST_STORES)
  get_property(package GLOBAL PROPERTY HOLDFAST_PACKAGE_${store})
  get_property(module GLOBAL PROPERTY HOLDFAST_PKG_CONFIG_${store})
  if(type STREQUAL "STATIC_LIBRARY")
    string(APPEND HOLDFAST_STORE_FACTS
      "set(_holdfast_${store}_package \"${package}\")\nset(_holdfast_${store}_module \"${module}\")\n")
  endif()
endforeach()
get_property(absent GLOBAL PROPERTY HOLDFAST_ABSENT)
foreach(store IN LISTS absent)
  get_property(reason GLOBAL PROPERTY HOLDFAST_ABSENT_${store})
  string(APPEND HOLDFAST_STORE_FACTS "set(holdfast_${store}_NOT_FOUND_MESSAGE \"${reason}\")\n")
endforeach()

list(JOIN components ", " HOLDFAST_COMPONENTS_NAMED)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/holdfast-config.cmake.in"
  "${PROJECT_BINARY_DIR}/holdfast-config.cmake" INSTALL_DESTINATION "${HOLDFAST_PACKAGE_DIR}")
# Before 1.0 a minor version may change the contract.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/holdfast-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/holdfast-config.cmake" "${PROJECT_BINARY_DIR}/holdfast-config-version.cmake"
  DESTINATION "${HOLDFAST_PACKAGE_DIR}")
# A project that uses the package finds clients without a CMake file of their own with these modules, as this build does.
foreach(module IN ITEMS FindGrpcClient FindZooKeeper)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${module}.cmake" "${PROJECT_BINARY_DIR}/${module}.cmake" COPYONLY)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/${module}.cmake" DESTINATION "${HOLDFAST_PACKAGE_DIR}")
endforeach()

# pkg-config: every program that links a static library also links what the library needs (Requires). For a shared library it
# need not.
file(RELATIVE_PATH PC_UP "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" PC_UP "${PC_UP}")
function(_holdfast_pc name requires libs)
  set(PC_NAME ${name})
  list(REMOVE_ITEM requires "")
  list(JOIN requires ", " PC_REQUIRES)
  set(PC_LIBS "${libs}")
  set(PC_FIELD "Requires")
  if(type STREQUAL "SHARED_LIBRARY")
    set(PC_FIELD "Requires.private")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/holdfast.pc.in" "${PROJECT_BINARY_DIR}/pkgconfig/${PC_NAME}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/pkgconfig/${PC_NAME}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

_holdfast_pc(holdfast-core "" "-lholdfast-core -pthread")
set(every holdfast-core)
foreach(store IN LISTS HOLDFAST_STORES)
  get_property(pc GLOBAL PROPERTY HOLDFAST_PC_${store})
  get_property(pc_libs GLOBAL PROPERTY HOLDFAST_PC_LIBS_${store})
  _holdfast_pc(holdfast-${store} "holdfast-core;${pc}" "-lholdfast-${store} ${pc_libs}")
  list(PREPEND every holdfast-${store})
endforeach()
if(HOLDFAST_DRIVERS)  # beside the shared library, the static one has to be named as a file
  _holdfast_pc(holdfast "" "-lholdfast")
else()
  _holdfast_pc(holdfast "${every}" "-lholdfast")
endif()
if(type STREQUAL "STATIC_LIBRARY")
  _holdfast_pc(holdfast-static "${every}" "-l:libholdfast.a")
endif()
if(TARGET holdfast_c)
  _holdfast_pc(holdfast-c "" "-lholdfast-c")  # it is linked with the clients of its stores
endif()
