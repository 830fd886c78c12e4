# Each public header says in its first error that it needs C++20, and the compiler stops there: it knows nothing of what an older
# standard lacks. The second error is the missing file that stops it.
file(GLOB_RECURSE headers RELATIVE "${include}" "${include}/holdfast/*.hpp")
if(NOT headers)
  message(FATAL_ERROR "there are no headers in ${include}")
endif()
set(wrong "")
foreach(header IN LISTS headers)
  execute_process(COMMAND "${compiler}" -std=c++17 -fsyntax-only -x c++ -include "${header}" -I "${include}" /dev/null
    RESULT_VARIABLE result ERROR_VARIABLE message)
  string(REGEX MATCHALL "error: [^\n]*" errors "${message}")
  list(LENGTH errors count)
  if(result EQUAL 0 OR NOT count EQUAL 2 OR NOT errors MATCHES "^error: (#error )?\"holdfast needs C\\+\\+20")
    list(APPEND wrong "${header}:\n${message}")
  endif()
endforeach()
if(wrong)
  message(FATAL_ERROR "Include <holdfast/cpp20.hpp> before everything that C++17 does not know. ${wrong}")
endif()
