#!/bin/sh
# compile_with.sh COMPILER [LAUNCHER...] g++ OPTION...: runs a command that CMake made for g++ with clang instead, which compiles a test
# program's sources in less than half the time. Both compilers use the same standard library, so their objects can be linked together.
# If COMPILER is "-", the command names clang already, and the script only handles precompiled headers:
#
# A precompiled header contains the path of its clone, so it is never taken from the compiler cache. The objects that use it are: the cache
# compares the checksum beside the header, which depends on the content of the headers and not on their paths (ccache's
# pch_external_checksum).
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

# Otherwise the remains of an earlier header would be used as the new one.
rm -f "$made" "$made.sum"
CCACHE_DISABLE=1 "$@" || exit
[ -n "$depends" ] || exit 0
# The generated file that includes the headers contains the path of the clone, too.
sed -e 's/^[^:]*://' -e 's/\\$//' "$depends" | tr -s ' ' '\n' | grep -v '/cmake_pch\.hxx' | grep . \
  | xargs -r sha256sum | cut -d' ' -f1 | sha256sum > "$made.sum"
