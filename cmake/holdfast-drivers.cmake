# The shared library libholdfast: the objects of the static libraries, including the stores that cost next to nothing. The other
# stores are drivers, which it loads when a URL asks for them (docs/drivers.md, decision 105).
set(HOLDFAST_LINKED_STORES sqlite memcached)
set(HOLDFAST_DRIVER_FOLDER "holdfast-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")

# All namespaces except holdfast itself and those in public headers; and the classes that public headers only declare.
set(HOLDFAST_PRIVATE_SCOPES base drivers engine family kernel losses observe primitive store::etcd store::mariadb store::memcached
  store::memory store::contender_text store::postgres store::redis store::sql store::sqlite store::zookeeper
  *::state barrier::round multi_lease::state_of_all)

# holdfast_drivers_in(<target> <store>...): open(url) can open these stores, and memory.
function(holdfast_drivers_in target)
  target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src/drivers/linked.cpp")
  foreach(store IN ITEMS memory ${ARGN})
    string(TOUPPER ${store} upper)
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src/drivers/${store}.cpp")
    target_compile_definitions(${target} PRIVATE HOLDFAST_WITH_${upper})
  endforeach()
endfunction()

# holdfast_shared_library(): the target holdfast_shared, and holdfast_driver_<store> for each store that it loads. Nothing is
# compiled twice.
function(holdfast_shared_library)
  if(BUILD_SHARED_LIBS)
    message(FATAL_ERROR "holdfast: HOLDFAST_DRIVERS makes the shared library itself; leave BUILD_SHARED_LIBS off.")
  endif()
  set(linked ${HOLDFAST_STORES})
  list(JOIN HOLDFAST_LINKED_STORES "|" names)
  list(FILTER linked INCLUDE REGEX "^(${names})$")
  set(loaded ${HOLDFAST_STORES})
  list(REMOVE_ITEM loaded ${linked})

  set(HOLDFAST_PRIVATE_PATTERNS "")
  foreach(room IN LISTS HOLDFAST_PRIVATE_SCOPES)
    foreach(what IN ITEMS "" typeinfo?for? typeinfo?name?for? vtable?for?)
      string(APPEND HOLDFAST_PRIVATE_PATTERNS "      ${what}holdfast::${room}::*;\n")
    endforeach()
  endforeach()
  set(map "${PROJECT_BINARY_DIR}/holdfast.map")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/holdfast.map.in" "${map}" @ONLY)

  set(parts core ${linked})
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:holdfast_\\1>")
  add_library(holdfast_shared SHARED "${PROJECT_SOURCE_DIR}/src/open.cpp" "${PROJECT_SOURCE_DIR}/src/drivers/load.cpp" ${parts})
  add_library(holdfast::shared ALIAS holdfast_shared)
  holdfast_drivers_in(holdfast_shared ${linked})
  _holdfast_driver_objects(holdfast_shared)
  target_compile_definitions(holdfast_shared PRIVATE HOLDFAST_LOADS_DRIVERS HOLDFAST_DRIVER_FOLDER="${HOLDFAST_DRIVER_FOLDER}")
  target_include_directories(holdfast_shared INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(holdfast_shared INTERFACE cxx_std_20)
  target_link_libraries(holdfast_shared PUBLIC Threads::Threads PRIVATE ${CMAKE_DL_LIBS})
  _holdfast_link_clients(holdfast_shared ${linked})
  # Symbolic: calls inside the library are direct, so the dynamic linker need not look them up when a program starts.
  target_link_options(holdfast_shared PRIVATE "LINKER:--version-script=${map}" LINKER:--no-undefined LINKER:-Bsymbolic)
  holdfast_stays_loaded(holdfast_shared)
  set_target_properties(holdfast_shared PROPERTIES EXPORT_NAME shared OUTPUT_NAME holdfast LINKER_LANGUAGE CXX
    LINK_DEPENDS "${map}" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH "$ORIGIN")

  foreach(store IN LISTS loaded)
    set(driver holdfast_driver_${store})
    add_library(${driver} MODULE "${PROJECT_SOURCE_DIR}/src/drivers/entry.cpp" "${PROJECT_SOURCE_DIR}/src/drivers/${store}.cpp"
      $<TARGET_OBJECTS:holdfast_${store}>)
    _holdfast_driver_objects(${driver})
    target_compile_definitions(${driver} PRIVATE HOLDFAST_DRIVER=${store})
    target_link_libraries(${driver} PRIVATE holdfast_shared)
    _holdfast_link_clients(${driver} ${store})
    target_link_options(${driver} PRIVATE LINKER:--no-undefined LINKER:-Bsymbolic
      "LINKER:--version-script=${PROJECT_SOURCE_DIR}/src/drivers/driver.map")
    # The library loads the driver, so the library is in memory already, and the driver needs no path to it.
    set_target_properties(${driver} PROPERTIES PREFIX "" OUTPUT_NAME holdfast-store-${store}
      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/${HOLDFAST_DRIVER_FOLDER}" SKIP_BUILD_RPATH ON)
  endforeach()
  set_property(GLOBAL PROPERTY HOLDFAST_LOADED_STORES "${loaded}")
  list(TRANSFORM loaded PREPEND holdfast_driver_)
  add_custom_target(holdfast_drivers DEPENDS ${loaded})
  set_property(GLOBAL PROPERTY HOLDFAST_TARGET_shared holdfast_shared)
endfunction()

# The few sources that join the stores to their families are compiled once more. All other objects are those of the static
# libraries.
function(_holdfast_driver_objects target)
  holdfast_own(${target})
  holdfast_unite(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_compile_features(${target} PRIVATE cxx_std_20)
endfunction()

function(_holdfast_link_clients target)
  foreach(store IN LISTS ARGN)
    get_property(clients GLOBAL PROPERTY HOLDFAST_LINK_${store})
    target_link_libraries(${target} PRIVATE ${clients})
  endforeach()
endfunction()
