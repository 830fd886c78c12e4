# A port in an overlay folder of this repository: vcpkg install holdfast --overlay-ports=packaging/vcpkg
set(SOURCE_PATH "${CURRENT_PORT_DIR}/../..")

set(stores "")
foreach(store IN ITEMS etcd mariadb memcached postgres redis sqlite)
  string(TOUPPER "${store}" upper)
  if(store IN_LIST FEATURES)
    list(APPEND stores "-DHOLDFAST_${upper}=ON")
  else()
    list(APPEND stores "-DHOLDFAST_${upper}=OFF")
  endif()
endforeach()

# libpq and libmariadb are found by their .pc files; protoc is one of the tools of the host.
vcpkg_find_acquire_program(PKGCONFIG)
list(APPEND stores "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}")
if("etcd" IN_LIST FEATURES)
  list(APPEND stores "-DGrpcClient_PROTOC=${CURRENT_HOST_INSTALLED_DIR}/tools/protobuf/protoc${VCPKG_HOST_EXECUTABLE_SUFFIX}")
endif()

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${stores} -DHOLDFAST_ZOOKEEPER=OFF -DHOLDFAST_BUILD_TOOL=OFF -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_BENCH=OFF
    -DHOLDFAST_BUILD_EXAMPLES=OFF -DHOLDFAST_BUILD_C=OFF
  MAYBE_UNUSED_VARIABLES PKG_CONFIG_EXECUTABLE)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/holdfast)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
