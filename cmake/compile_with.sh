#!/bin/sh
# compile_with.sh COMPILER [LAUNCHER...] g++ OPTION...: carries out a command that CMake made for g++ with clang, which reads a test
# program's sources in less than half the time. Both use the same standard library, so what they make links.
compiler=$1
shift
last=
for word in "$@"; do
  shift
  case $word in
    */g++|*/c++|g++|c++) set -- "$@" "$compiler" -Wno-unknown-warning-option -Wno-deprecated-declarations -DASIO_HAS_CO_AWAIT ;;
    --param=*) ;;
    *) set -- "$@" "$word" ;;
  esac
  # What is left of an earlier one would be read for the new one.
  case $last$word in -o*.gch) rm -f "$word"; set -- "$@" -Xclang -fno-pch-timestamp -fpch-instantiate-templates ;; esac
  last=$word
done
exec "$@"
