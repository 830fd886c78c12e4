#!/bin/sh
# installed.sh COMPILER PKG_CONFIG_DIR WORK_DIR PYTHON: a C program built with what pkg-config says, nothing else, and one in Python, both
# on the installed library.
set -eu
unset HOLDFAST_LIBRARY
export PKG_CONFIG_PATH="$2"
here=$(cd "$(dirname "$0")" && pwd)
repository="$here/../.."
rm -rf "$3"
mkdir -p "$3"
cd "$3"
# Unquoted: pkg-config prints words.
# shellcheck disable=SC2046
"$1" -std=c99 -Wall -Wextra -Wpedantic -Werror "$repository/examples/first_program.c" -o first_program \
  $(pkg-config --cflags --libs holdfast-c)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir holdfast-c)
export LD_LIBRARY_PATH
./first_program
PYTHONPATH="$repository/bindings/python" "$4" -B "$repository/examples/first_program.py"
