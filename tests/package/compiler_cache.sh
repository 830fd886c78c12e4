# compiler_cache.sh COMPILE_WITH FOLDER: two clones that share a compiler cache. The second one compiles though the first is gone
# by then, whose precompiled header it would not find; and what uses the header is taken from the cache.
set -eu
compile_with=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
# What the caller has set for a cache of its own may switch off this one, too.
for name in $(env | sed -n 's/^\(CCACHE_[A-Z_0-9]*\)=.*/\1/p'); do unset "$name"; done
echo > "$folder/ccache.conf"
export CCACHE_CONFIGPATH="$folder/ccache.conf" CCACHE_DIR="$folder/cache" CCACHE_PCH_EXTSUM=true CCACHE_SLOPPINESS=pch_defines,time_macros

compile() {
  CCACHE_BASEDIR=$folder/$clone "$compile_with" clang++-19 ccache g++ -std=c++20 "-I$folder/$clone" "$@"
}
make_clone() {
  clone=$1
  mkdir "$folder/$clone"
  cd "$folder/$clone"
  echo "inline int answer() { return ${2:-42}; }" > library.hpp
  echo '#include <library.hpp>' > cmake_pch.hxx
  echo > cmake_pch.hxx.cxx
  echo 'int main() { return answer(); }' > use.cpp
  header=$folder/$clone/cmake_pch.hxx
  compile -x c++-header -include "$header" -MD -MT it -MF "$header.gch.d" -o "$header.gch" -c "$header.cxx"
  compile -Winvalid-pch -include "$header" -MD -MT it -MF use.d -o use.o -c "$folder/$clone/use.cpp"
}
hits() { ccache --print-stats | awk '/^(direct|preprocessed)_cache_hit/ { n += $2 } END { print n }'; }

make_clone first
cd "$folder"
rm -rf first
[ "$(hits)" = 0 ] || { echo "the first clone found something in an empty cache" >&2; exit 1; }
make_clone second
[ "$(hits)" = 1 ] || { echo "the second clone took $(hits) results from the cache, not the one of use.cpp" >&2; exit 1; }
make_clone third 43
[ "$(hits)" = 1 ] || { echo "another header, and the cache does not notice" >&2; exit 1; }
