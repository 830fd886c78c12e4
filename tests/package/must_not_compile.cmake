# A mistake that the types must refuse. Each case compiles as it stands; with -DMISTAKE it must fail, and with the
# message named in its line "// expect: <regex>": a case that fails for another reason proves nothing.
set(command "${compiler}" -std=c++20 -fsyntax-only -Werror=unused-result -I "${precompiled}" -I "${include}")

execute_process(COMMAND ${command} "${case}" RESULT_VARIABLE result ERROR_VARIABLE message)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${case} must compile without the mistake, so that only the mistake can fail:\n${message}")
endif()

file(STRINGS "${case}" expect REGEX "^// expect: ")
if(NOT expect)
  message(FATAL_ERROR "${case}: add a line '// expect: <regex of the compiler's message>'")
endif()
string(REPLACE "// expect: " "" expect "${expect}")
execute_process(COMMAND ${command} -DMISTAKE "${case}" RESULT_VARIABLE result ERROR_VARIABLE message)
if(result EQUAL 0)
  message(FATAL_ERROR "${case}: the mistake compiles. Something in include/holdfast became too permissive.")
endif()
if(NOT message MATCHES "${expect}")
  message(FATAL_ERROR "${case}: fails, but not with '${expect}':\n${message}")
endif()
