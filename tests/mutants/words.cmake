# cmake -DPROJECT_SOURCE_DIR=ROOT -P words.cmake: says what the scripts have in common with the kernels, "WORD VALUE" on each line.
include("${PROJECT_SOURCE_DIR}/cmake/holdfast-redis.cmake")
holdfast_kernel_words(words values)
foreach(word value IN ZIP_LISTS words values)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${word} ${value}")
endforeach()
