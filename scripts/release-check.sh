#!/usr/bin/env bash
# release-check.sh [STEP...]: runs what a release must pass (docs/stability.md), all of it or the named steps. A failed step does not stop
# the others. The result is in build/release-check.txt, with the commit that was checked, and the name in $SIGNED_OFF_BY: of the person who
# is responsible for the release, and looked at the pictures of the pages. A run of all steps without a name fails.
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A does=(
  [clean]="no file of the tree is changed or unknown to git"
  [versions]="every file that has the version has the same, and the changelog has a date"
  [lint]="formatting, clang-tidy, house rules; the links and snippets of the pages"
  [suites]="every test in the lane gcc, and the rooms of the lanes asan and tsan; g++ reads each source by itself"
  [clang]="clang compiles each source of the library, the programs and the fast rooms by itself, and these rooms pass"
  [nightly]="what the lanes leave out"
  [mutants]="the tests find each seeded fault but those whose entry says that it survives"
  [deb]="Debian packages without an error of lintian"
  [test-deb]="installed, used, upgraded${OLD_DEBS:+ from $OLD_DEBS}, removed and purged in a fresh Debian: nothing is left"
  [package]="a tarball that runs from another folder"
  [abi]="what the libraries export is what the stored lists say"
  [licences]="docs/licences.md names each library that the packages need"
  [deploy]="the examples of deployment"
  [site]="the site is built without a warning, and Chromium reads it"
  [browser]="the page of holdfast serve in Chromium"
)
order=(clean versions lint suites clang nightly mutants deb test-deb package abi licences deploy site browser)

clean() { [[ -z $(git status --porcelain) ]] || { git status --short; return 1; }; }
versions() { python3 -B packaging/versions.py --released; }
lint() { make lint; }
suites() { make test-all; }
clang() { make test-clang; }
nightly() { make test-nightly; }
mutants() { make mutants; }
deb() { make deb; }
test-deb() { make test-deb; }
package() { make package && scripts/test-package.sh; }
abi() { scripts/abi.sh; }
licences() { python3 -B packaging/licences.py; }
deploy() { make test-deploy; }
site() { make docs-check; }
browser() { make test-browser; }

steps=("$@")
nobody=
by="nobody, because only some steps ran"
if ((${#steps[@]} == 0)); then
  steps=("${order[@]}")
  by=${SIGNED_OFF_BY:-}
  if [[ -z ${SIGNED_OFF_BY:-} ]]; then
    nobody=yes
    by="nobody, so this is not the report of a release"
    echo "release-check: SIGNED_OFF_BY has no name, so this will fail; all steps run" >&2
  fi
fi
mkdir -p build
report=build/release-check.txt
{ echo "commit $(git rev-parse HEAD)"; echo "began  $(date --utc +%FT%TZ)"; } >"$report"
failed=0
for step in "${steps[@]}"; do
  [[ -n ${does[$step]:-} ]] || { echo "release-check: there is no step $step; there are ${order[*]}" >&2; exit 2; }
  echo "==== $step: ${does[$step]}"
  if "$step"; then result=passed; else result=FAILED failed=1; fi
  printf '%-9s %s: %s\n' "$result" "$step" "${does[$step]}" >>"$report"
done
{ echo "ended  $(date --utc +%FT%TZ)"; echo "signed off by: $by"; } >>"$report"
cat "$report"
[[ $failed == 0 && -z $nobody ]]
