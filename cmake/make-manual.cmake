# cmake -D program=… -D faultproxy=… -D scdoc=… -D share=… -P make-manual.cmake: writes the manuals and completions that the
# programs print as files under `share`.
function(write_said file)
  execute_process(COMMAND "${program}" ${ARGN} OUTPUT_FILE "${share}/${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY "${share}/bash-completion/completions" "${share}/zsh/site-functions" "${share}/fish/vendor_completions.d")
write_said(bash-completion/completions/holdfast completion bash)
write_said(zsh/site-functions/_holdfast completion zsh)
write_said(fish/vendor_completions.d/holdfast.fish completion fish)

file(REMOVE_RECURSE "${share}/man")
if(NOT scdoc)
  return()
endif()
file(MAKE_DIRECTORY "${share}/man/man1")
execute_process(COMMAND "${program}" manual OUTPUT_VARIABLE pages OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" pages "${pages}")
foreach(page IN LISTS pages)
  execute_process(COMMAND "${program}" manual "${page}" COMMAND "${scdoc}" OUTPUT_FILE "${share}/man/man1/${page}.1"
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND "${faultproxy}" --manual COMMAND "${scdoc}" OUTPUT_FILE "${share}/man/man1/holdfast-faultproxy.1"
  COMMAND_ERROR_IS_FATAL ANY)
