# holdfast::c: the C interface (holdfast/holdfast.h) and all stores in one shared library, for C and for languages that call C.
# It is named holdfast-c because -lholdfast is the C++ library. It exports only what its version script lists. Its objects are
# those of the static libraries, which are compiled as position-independent code anyway.
function(holdfast_c_library)
  holdfast_glob(sources src/c)
  set(map "${PROJECT_SOURCE_DIR}/src/c/holdfast.map")
  add_library(holdfast_c SHARED ${sources})
  holdfast_own(holdfast_c)
  holdfast_unite(holdfast_c)
  holdfast_precompile(holdfast_c FROM holdfast_core)
  add_library(holdfast::c ALIAS holdfast_c)
  target_include_directories(holdfast_c PRIVATE "${PROJECT_SOURCE_DIR}/src")
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/holdfast/c/*.h")
  target_sources(holdfast_c PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include"
    FILES "${PROJECT_SOURCE_DIR}/include/holdfast/holdfast.h" ${headers})
  target_link_libraries(holdfast_c PRIVATE ${HOLDFAST_FOR_PROGRAMS})
  target_link_options(holdfast_c PRIVATE "LINKER:--version-script=${map}")
  holdfast_stays_loaded(holdfast_c)
  if(NOT HOLDFAST_SANITIZE)  # a sanitizer's functions are in the program, so symbols stay undefined
    target_link_options(holdfast_c PRIVATE LINKER:--no-undefined)
  endif()
  set_target_properties(holdfast_c PROPERTIES
    EXPORT_NAME c
    OUTPUT_NAME holdfast-c
    INSTALL_RPATH "$ORIGIN"
    LINK_DEPENDS "${map}"
    LINKER_LANGUAGE CXX
    DEFINE_SYMBOL ""
    VERSION 0.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    SOVERSION 0)  # holdfast_abi(), not the version of holdfast
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_COMPONENTS c)
  set_property(GLOBAL PROPERTY HOLDFAST_TARGET_c holdfast_c)
endfunction()
