# holdfast_manual(<program>): makes the man pages and the shell completions, which the program prints itself, under share/ in the
# build folder, in the layout in which they are installed. They are made together with the program, so a built program can always
# be installed.
function(holdfast_manual program)
  if(CMAKE_CROSSCOMPILING)
    message(STATUS "holdfast: no man pages and no completions, which the program prints: it cannot run here")
    return()
  endif()
  find_program(HOLDFAST_SCDOC scdoc)
  mark_as_advanced(HOLDFAST_SCDOC)
  if(NOT HOLDFAST_SCDOC)
    message(STATUS "holdfast: no man pages, because there is no scdoc")
  endif()
  add_custom_command(TARGET ${program} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -D "program=$<TARGET_FILE:${program}>" -D "scdoc=${HOLDFAST_SCDOC}"
      -D "faultproxy=$<TARGET_FILE:holdfast_faultproxy>"
      -D "share=${PROJECT_BINARY_DIR}/share" -P "${PROJECT_SOURCE_DIR}/cmake/make-manual.cmake"
    VERBATIM)
endfunction()

# Installs the files of holdfast_manual() where man and the shells look for them.
function(holdfast_install_manual)
  set(share "${PROJECT_BINARY_DIR}/share")
  file(MAKE_DIRECTORY "${share}/man/man1")
  install(DIRECTORY "${share}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}")
  foreach(shell IN ITEMS bash-completion/completions zsh/site-functions fish/vendor_completions.d)
    file(MAKE_DIRECTORY "${share}/${shell}")
    install(DIRECTORY "${share}/${shell}/" DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/${shell}")
  endforeach()
endfunction()
