# The conformance suite with servers: all tests of one CTest run share them. They are started (and ended) as fixtures of
# those that need them. Where not all rooms are built, one Redis server is enough.
set(shared_servers "")
if("redis" IN_LIST HOLDFAST_STORES)
  list(APPEND shared_servers redis redis_replicas redis_sentinel redis_cluster)
endif()
foreach(kind IN ITEMS memcached postgres mariadb zookeeper etcd)
  if("${kind}" IN_LIST HOLDFAST_STORES)
    list(APPEND shared_servers ${kind})
  endif()
endforeach()
if("postgres" IN_LIST HOLDFAST_STORES)
  list(APPEND shared_servers postgres_pooled)
endif()
if(TARGET test_conformance)
  set(servers_folder "${PROJECT_BINARY_DIR}/tests/servers")
  function(holdfast_on_servers fixture tests)
    gtest_discover_tests(test_conformance TEST_PREFIX "conformance." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      TEST_FILTER "${tests}" PROPERTIES LABELS conformance TIMEOUT 120 FIXTURES_REQUIRED servers_${fixture}
        ENVIRONMENT "HOLDFAST_TEST_SERVERS=${servers_folder}")
  endfunction()
  foreach(kind IN LISTS shared_servers)
    add_test(NAME conformance.servers.${kind}.start
      COMMAND test_conformance --play-role share-servers ${kind} "${servers_folder}")
    add_test(NAME conformance.servers.${kind}.end COMMAND ${CMAKE_COMMAND} -E rm "${servers_folder}/${kind}")
    set_tests_properties(conformance.servers.${kind}.start PROPERTIES FIXTURES_SETUP "servers_${kind};servers_all")
    set_tests_properties(conformance.servers.${kind}.end PROPERTIES FIXTURES_CLEANUP "servers_${kind};servers_all")
    set_tests_properties(conformance.servers.${kind}.start conformance.servers.${kind}.end
      PROPERTIES LABELS conformance TIMEOUT 120)
    # A pooler changes nothing that a sanitizer could see.
    if(kind STREQUAL "postgres_pooled" AND HOLDFAST_SANITIZE)
      continue()
    endif()
    if(kind STREQUAL "redis" OR HOLDFAST_TEST_ROOMS STREQUAL "all")
      holdfast_on_servers(${kind} "*/${kind}__*:*/${kind}_session__*")
    endif()
  endforeach()
  holdfast_on_servers(all "matrix.*")
  # The same suites with options for every lock: hundreds of rules of a few milliseconds, so one process for each store;
  # in the gcc lane only.
  if(HOLDFAST_TEST_ROOMS STREQUAL "all" AND NOT HOLDFAST_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    foreach(store IN ITEMS memory sqlite redis)
      if(store STREQUAL "memory" OR store IN_LIST HOLDFAST_STORES)
        add_test(NAME conformance.options.${store} COMMAND test_conformance
          --gtest_filter=*/${store}_lingering__*:*/${store}_unconfirmed__*:*/${store}_ungated__* --gtest_brief=1)
        set_tests_properties(conformance.options.${store} PROPERTIES LABELS conformance TIMEOUT 900)
      endif()
    endforeach()
    if(TEST conformance.options.redis)
      set_tests_properties(conformance.options.redis PROPERTIES FIXTURES_REQUIRED servers_redis
        ENVIRONMENT "HOLDFAST_TEST_SERVERS=${servers_folder}")
    endif()
  endif()
endif()
