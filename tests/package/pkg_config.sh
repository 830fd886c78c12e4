#!/bin/sh
# pkg_config.sh COMPILER PKG_CONFIG_DIR WORK_DIR: builds and runs the consumer with what pkg-config says, nothing else.
set -eu
compiler=$1
export PKG_CONFIG_PATH="$2"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$3"
cd "$3"

pkg-config --print-errors --exists 'holdfast >= 0.1' 'holdfast < 0.2' holdfast-core holdfast-sqlite
# Unquoted: pkg-config prints words.
# shellcheck disable=SC2046
"$compiler" -std=c++20 "$here/consumer/main.cpp" -o consumer $(pkg-config --cflags --libs holdfast)
LD_LIBRARY_PATH="$(pkg-config --variable=libdir holdfast)" ./consumer
# shellcheck disable=SC2046
"$compiler" -std=c++20 "$here/consumer/main.cpp" -o static_consumer $(pkg-config --cflags --libs holdfast-static)
./static_consumer
[ -z "$(ldd static_consumer | grep libholdfast)" ] || { echo "holdfast-static links a shared library of holdfast" >&2; exit 1; }

# Each component: all that it asks to be linked is there.
echo 'int main() {}' > empty.cpp
for file in "$2"/holdfast*.pc; do
  name=$(basename "$file" .pc)
  # shellcheck disable=SC2046
  "$compiler" empty.cpp -o empty $(pkg-config --cflags --libs "$name")
done
