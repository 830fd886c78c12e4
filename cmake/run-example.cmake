# Runs one example in an empty folder, so that a file left by an earlier run cannot make it pass or fail.
file(REMOVE_RECURSE "${cwd}")
file(MAKE_DIRECTORY "${cwd}")
execute_process(COMMAND "${program}" WORKING_DIRECTORY "${cwd}" RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${program} ended with ${result}; an example must end with 0")
endif()
