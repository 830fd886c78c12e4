# holdfast_add_store(<name> [PACKAGE <CMake package> | PKG_CONFIG <module>] [LINK <target>...] [PC <module>...]
#                    [PC_LIBS <option>...])
#
# Makes holdfast::<name> from src/store/<name>/*.cpp. The vendor's client is private: no user of the library sees its headers.
#   PACKAGE     the package for find_package;  PKG_CONFIG  or the module for pkg-config (links PkgConfig::HOLDFAST_<NAME>)
#   LINK        targets to link                PC          the modules that the store's own .pc file requires
#   PC_LIBS     the options with which it links a client that has no .pc file
# HOLDFAST_<NAME> is AUTO (build it if the client is found), ON (fail if it is not) or OFF.
# Adds <name> to HOLDFAST_STORES in the caller's scope if the store is built.
function(holdfast_add_store name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PACKAGE;PKG_CONFIG" "LINK;PC;PC_LIBS")
  string(TOUPPER ${name} upper)
  set(HOLDFAST_${upper} AUTO CACHE STRING "Build the ${name} store: AUTO, ON or OFF")
  set_property(CACHE HOLDFAST_${upper} PROPERTY STRINGS AUTO ON OFF)

  if(NOT HOLDFAST_${upper})
    _holdfast_store_absent(${name} "built with HOLDFAST_${upper}=OFF")
    return()
  endif()

  set(found TRUE)
  if(arg_PACKAGE)
    find_package(${arg_PACKAGE} QUIET)
    set(found ${${arg_PACKAGE}_FOUND})
  elseif(arg_PKG_CONFIG)
    find_package(PkgConfig QUIET)
    set(found FALSE)
    if(PkgConfig_FOUND)
      pkg_check_modules(HOLDFAST_${upper} QUIET IMPORTED_TARGET ${arg_PKG_CONFIG})
      set(found ${HOLDFAST_${upper}_FOUND})
      list(APPEND arg_LINK PkgConfig::HOLDFAST_${upper})
      list(APPEND arg_PC ${arg_PKG_CONFIG})
    endif()
  endif()
  if(NOT found)
    set(what "${arg_PACKAGE}${arg_PKG_CONFIG}")
    if(HOLDFAST_${upper} STREQUAL "AUTO")
      _holdfast_store_absent(${name} "its client library ${what} was not found when holdfast was built")
      return()
    endif()
    message(FATAL_ERROR "holdfast: HOLDFAST_${upper}=ON, but ${what} was not found. "
      "Install its development package, or set HOLDFAST_${upper} to AUTO or OFF.")
  endif()

  holdfast_glob(sources src/store/${name})
  set(target holdfast_${name})
  add_library(${target} ${sources})
  target_link_libraries(${target} PUBLIC holdfast_core PRIVATE ${arg_LINK})
  holdfast_library(${target} ${name})
  set_property(GLOBAL PROPERTY HOLDFAST_LINK_${name} "${arg_LINK}")
  set_property(GLOBAL PROPERTY HOLDFAST_PACKAGE_${name} "${arg_PACKAGE}")
  set_property(GLOBAL PROPERTY HOLDFAST_PKG_CONFIG_${name} "${arg_PKG_CONFIG}")
  set_property(GLOBAL PROPERTY HOLDFAST_PC_${name} "${arg_PC}")
  list(JOIN arg_PC_LIBS " " pc_libs)
  set_property(GLOBAL PROPERTY HOLDFAST_PC_LIBS_${name} "${pc_libs}")

  list(APPEND HOLDFAST_STORES ${name})
  set(HOLDFAST_STORES ${HOLDFAST_STORES} PARENT_SCOPE)
endfunction()

# The reason is stored in the installed package, so that find_package(holdfast COMPONENTS <name>) can print it.
function(_holdfast_store_absent name reason)
  message(STATUS "holdfast: no ${name} store: ${reason}")
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_ABSENT ${name})
  set_property(GLOBAL PROPERTY HOLDFAST_ABSENT_${name} "${reason}")
endfunction()

# holdfast_sql_clients(<target> <prefix>): for a program that talks to the SQL servers itself (baselines, the shop of the demo).
# Links the clients with which their stores were built, and defines <prefix>_POSTGRES and <prefix>_MARIADB for the ones that exist.
function(holdfast_sql_clients target prefix)
  foreach(store IN ITEMS postgres mariadb)
    if(TARGET holdfast_${store})
      string(TOUPPER ${store} upper)
      target_link_libraries(${target} PRIVATE PkgConfig::HOLDFAST_${upper})
      target_compile_definitions(${target} PRIVATE ${prefix}_${upper})
    endif()
  endforeach()
endfunction()
