#!/bin/sh
# compile_with.sh COMPILER [LAUNCHER...] g++ OPTION...: carries out a command that CMake made for g++ with clang, which reads a test
# program's sources in less than half the time. Both use the same standard library, so what they make links.
# COMPILER is "-" where the command names clang already: then only what is below is done.
#
# A precompiled header names the clone that it was made in, so it is never taken from the compiler cache. What uses it is: the cache
# compares the sum beside it, which says what the headers contain and not where they are (ccache's pch_external_checksum).
compiler=$1
shift
last='' made='' depends=''
for word in "$@"; do
  shift
  case $compiler:$word in
    -:*) set -- "$@" "$word" ;;
    *:*/g++ | *:*/c++ | *:g++ | *:c++)
      set -- "$@" "$compiler" -Wno-unknown-warning-option -Wno-deprecated-declarations -DASIO_HAS_CO_AWAIT ;;
    *:--param=*) ;;
    *) set -- "$@" "$word" ;;
  esac
  case $last:$word in
    -o:*.gch) made=$word; set -- "$@" -Xclang -fno-pch-timestamp -fpch-instantiate-templates ;;
    -o:*.pch) made=$word ;;
    -MF:*) depends=$word ;;
  esac
  last=$word
done
[ -n "$made" ] || exec "$@"

# What is left of an earlier one would be read for the new one.
rm -f "$made" "$made.sum"
CCACHE_DISABLE=1 "$@" || exit
[ -n "$depends" ] || exit 0
# The generated file that includes the headers names the clone, too.
sed -e 's/^[^:]*://' -e 's/\\$//' "$depends" | tr -s ' ' '\n' | grep -v '/cmake_pch\.hxx' | grep . \
  | xargs -r sha256sum | cut -d' ' -f1 | sha256sum > "$made.sum"
