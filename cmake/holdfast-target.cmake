# Functions that make the targets of this project. All settings are on the target itself: a program that embeds holdfast keeps its
# own flags, and no setting is exported.

# Uses ccache, so that unchanged sources are not compiled again. An embedding project decides for itself.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(HOLDFAST_CCACHE ccache)
  mark_as_advanced(HOLDFAST_CCACHE)
  if(HOLDFAST_CCACHE)
    # ccache also keeps objects that use precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=true
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${HOLDFAST_CCACHE}")
  endif()
endif()

# holdfast_glob(<out> <folder>...): the sources in these folders. So a new file needs no edit here.
function(holdfast_glob out)
  set(found "")
  foreach(folder IN LISTS ARGN)
    file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
    list(APPEND found ${files})
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# holdfast_own(<target>): warnings and sanitizers, which only our own targets get.
function(holdfast_own target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_definitions(${target} PRIVATE HOLDFAST_VERSION="${PROJECT_VERSION}")
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms on "text" + string, GCC bug 105651
    endif()
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_definitions(${target} PRIVATE ASIO_HAS_CO_AWAIT)  # Asio 1.22 does not know that clang has it
    endif()
    if(HOLDFAST_UNITY)
      # Sources that are compiled as one may use a name for different things; and g++ 12 gives false alarms.
      target_compile_options(${target} PRIVATE -Wno-shadow)
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -Wno-subobject-linkage -Wno-array-bounds -Wno-maybe-uninitialized
          -Wno-stringop-overflow)
      endif()
    elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)  # false alarms on a std::variant that is moved
    endif()
    if(HOLDFAST_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
    if(HOLDFAST_SANITIZE)
      target_compile_options(${target} PRIVATE
        -fsanitize=${HOLDFAST_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
      target_link_options(${target} PRIVATE -fsanitize=${HOLDFAST_SANITIZE})
    endif()
  endif()
endfunction()

# holdfast_hurry(<target>): compiles the target with HOLDFAST_TEST_COMPILER, if that is set: a faster compiler, which uses
# precompiled headers. Most of a lane's time goes into targets other than the library. Call it before holdfast_precompile.
function(holdfast_hurry target)
  target_compile_options(${target} PRIVATE ${HOLDFAST_TEST_OPTIONS})
  if(HOLDFAST_TEST_COMPILER)
    set(launcher "${PROJECT_SOURCE_DIR}/cmake/compile_with.sh" "${HOLDFAST_TEST_COMPILER}" ${CMAKE_CXX_COMPILER_LAUNCHER})
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
  endif()
endfunction()

# holdfast_stays_loaded(<target>): dlclose() leaves this shared library in memory, because its threads run until the process ends.
function(holdfast_stays_loaded target)
  if(NOT APPLE)
    target_link_options(${target} PRIVATE LINKER:-z,nodelete)
  endif()
endfunction()

# holdfast_unite(<target>): compiles up to HOLDFAST_UNITY sources of the target as one, so that their headers are read once.
function(holdfast_unite target)
  if(HOLDFAST_UNITY)
    get_target_property(sources ${target} SOURCES)
    string(REGEX REPLACE "[][+.*()^$?|\\]" "\\\\\\0" folder "${PROJECT_SOURCE_DIR}")
    list(FILTER sources INCLUDE REGEX "^${folder}/.*\\.cpp$")
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_UNITED "@${target}" ${sources})
  endif()
endfunction()

# holdfast_unite_all(): call it after the last target. One process groups the sources of all targets: one process for each target
# would take ten seconds.
function(holdfast_unite_all)
  get_property(united GLOBAL PROPERTY HOLDFAST_UNITED)
  if(NOT united)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/unity_groups.py")
  execute_process(COMMAND ${Python3_EXECUTABLE} -B "${PROJECT_SOURCE_DIR}/cmake/unity_groups.py" ${HOLDFAST_UNITY} ${united}
    OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" groups "${groups}")
  set(united "")
  foreach(group IN LISTS groups)
    string(REPLACE "|" ";" files "${group}")
    list(POP_FRONT files target)
    if(NOT target STREQUAL united)
      set(united ${target})
      set(number 0)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    endif()
    set_source_files_properties(${files} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${number}")
    math(EXPR number "${number} + 1")
  endforeach()
endfunction()

# holdfast_precompile(<target> [FROM <target that has precompiled them>] <header>...)
function(holdfast_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FROM" "")
  get_target_property(launcher ${target} CXX_COMPILER_LAUNCHER)
  if(NOT HOLDFAST_PRECOMPILED AND NOT launcher MATCHES "compile_with")
    return()
  endif()
  if(arg_FROM)
    target_precompile_headers(${target} REUSE_FROM ${arg_FROM})
  else()
    if(NOT launcher MATCHES "compile_with")
      set(launcher "${PROJECT_SOURCE_DIR}/cmake/compile_with.sh" - ${CMAKE_CXX_COMPILER_LAUNCHER})
      set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
    endif()
    target_precompile_headers(${target} PRIVATE ${arg_UNPARSED_ARGUMENTS})
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")  # for ccache
    # In a precompiled header, clang also reports warnings about system headers: std::stable_partition of libstdc++ 12.
    target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
  endif()
endfunction()

# holdfast_library(<target> <component>): the public name holdfast::<component> and the name of the file on disk.
function(holdfast_library target component)
  holdfast_own(${target})
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE -Wpedantic)  # a project that embeds the library may have it
  endif()
  holdfast_unite(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  add_library(holdfast::${component} ALIAS ${target})
  set(file_name holdfast-${component})
  if(component STREQUAL "holdfast")
    set(file_name holdfast)
  endif()
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${component}
    OUTPUT_NAME ${file_name}
    DEFINE_SYMBOL ""  # a shared library compiles as the static one does
    POSITION_INDEPENDENT_CODE ON  # so that a plug-in can contain the static library
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(component STREQUAL "core")
    holdfast_precompile(${target} <holdfast/holdfast.hpp>)
  else()
    holdfast_precompile(${target} FROM holdfast_core)
  endif()
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_COMPONENTS ${component})
  set_property(GLOBAL PROPERTY HOLDFAST_TARGET_${component} ${target})
endfunction()

# holdfast_program(<target> <name of the program> <folder> [<folder>...]): main.cpp, and the rest as <target>_parts, which tests can link.
function(holdfast_program target name folder)
  holdfast_glob(sources ${folder} ${ARGN})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  set(parts ${target}_parts)
  add_library(${parts} STATIC ${sources})
  holdfast_own(${parts})
  holdfast_unite(${parts})
  holdfast_hurry(${parts})
  target_include_directories(${parts} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${parts} PUBLIC ${HOLDFAST_FOR_PROGRAMS})
  holdfast_precompile(${parts} <holdfast/holdfast.hpp>)
  # Only the programs need these packages; the library itself needs none of them.
  find_package(CLI11 REQUIRED)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(SQLite3 REQUIRED)
  target_link_libraries(${parts} PUBLIC CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json SQLite::SQLite3)

  add_executable(${target} ${folder}/main.cpp)
  holdfast_own(${target})
  holdfast_hurry(${target})
  target_link_libraries(${target} PRIVATE ${parts})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  if(HOLDFAST_DRIVERS)  # so that an installed tree can be moved
    file(RELATIVE_PATH to_libraries "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix/${CMAKE_INSTALL_LIBDIR}")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
  endif()
endfunction()

# holdfast_faultproxy(<folder>): the program holdfast-faultproxy, and holdfast_faultproxy_parts for the tests. Needs no other
# library.
function(holdfast_faultproxy folder)
  holdfast_glob(sources ${folder})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(holdfast_faultproxy_parts STATIC ${sources})
  holdfast_own(holdfast_faultproxy_parts)
  holdfast_unite(holdfast_faultproxy_parts)
  target_compile_features(holdfast_faultproxy_parts PUBLIC cxx_std_20)
  target_include_directories(holdfast_faultproxy_parts PUBLIC "${PROJECT_SOURCE_DIR}")
  if(HOLDFAST_BUILD_TOOL)
    add_executable(holdfast_faultproxy ${folder}/main.cpp)
    holdfast_own(holdfast_faultproxy)
    target_link_libraries(holdfast_faultproxy PRIVATE holdfast_faultproxy_parts)
    set_target_properties(holdfast_faultproxy PROPERTIES
      OUTPUT_NAME holdfast-faultproxy RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  endif()
endfunction()

# holdfast_examples(<folder>): each file is one program, and each program is a test: it must exit with 0.
function(holdfast_examples folder)
  holdfast_glob(sources ${folder})
  set(precompiled <holdfast/holdfast.hpp>)
  foreach(source IN LISTS sources)
    get_filename_component(stem "${source}" NAME_WE)
    # An example whose name begins with a store's name also uses the client of that store.
    set(client "")
    if(stem MATCHES "^(postgres|mariadb)_")
      if(NOT TARGET holdfast_${CMAKE_MATCH_1})
        continue()
      endif()
      set(client holdfast::${CMAKE_MATCH_1})
      get_property(vendor GLOBAL PROPERTY HOLDFAST_LINK_${CMAKE_MATCH_1})
      list(APPEND client ${vendor})
    endif()
    # A user who only builds the library need not have spdlog.
    if(stem MATCHES "^spdlog_")
      find_package(spdlog QUIET)
      if(NOT spdlog_FOUND AND HOLDFAST_BUILD_TESTS)
        message(FATAL_ERROR "${stem}: spdlog is missing; scripts/install-deps.sh test installs it")
      elseif(NOT spdlog_FOUND)
        continue()
      endif()
      set(client spdlog::spdlog)
    endif()
    add_executable(example_${stem} "${source}")
    holdfast_own(example_${stem})
    if(stem MATCHES "^async")  # examples with coroutines use the user's compiler
      target_compile_options(example_${stem} PRIVATE ${HOLDFAST_TEST_OPTIONS})
    else()
      holdfast_hurry(example_${stem})
      if(NOT client)  # a client's options do not fit the precompiled headers
        holdfast_precompile(example_${stem} ${precompiled})
        if(NOT FROM IN_LIST precompiled)
          set(precompiled FROM example_${stem})
        endif()
      endif()
    endif()
    target_link_libraries(example_${stem} PRIVATE holdfast::holdfast ${client})
    set_target_properties(example_${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
    if(HOLDFAST_BUILD_TESTS)
      # Each example runs in an empty folder, because examples write to relative paths such as sqlite:locks.db.
      set(cwd "${PROJECT_BINARY_DIR}/examples/run/${stem}")
      add_test(NAME example.${stem} COMMAND ${CMAKE_COMMAND}
        -D "program=$<TARGET_FILE:example_${stem}>" -D "cwd=${cwd}" -P "${PROJECT_SOURCE_DIR}/cmake/run-example.cmake")
      set_tests_properties(example.${stem} PROPERTIES LABELS example TIMEOUT 60)
    endif()
  endforeach()
endfunction()
