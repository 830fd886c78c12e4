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

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${stores} -DHOLDFAST_ZOOKEEPER=OFF -DHOLDFAST_BUILD_TOOL=OFF -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_BENCH=OFF
    -DHOLDFAST_BUILD_EXAMPLES=OFF -DHOLDFAST_BUILD_C=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/holdfast)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
