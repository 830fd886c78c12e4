#!/usr/bin/env bash
# check.sh MODEL FOLDER safety|cycles EXPECTED COMPILER [-DNAME...]: has Spin search all states of a variant of the model.
# EXPECTED is "nothing", or a part of the error's words; then it fails if another error is found, or none.
# COMPILER: with an option, such as "gcc -O1".
set -euo pipefail
model=$1 folder=$2 search=$3 expected=$4 compiler=$5
shift 5
mkdir -p "$folder"
cd "$folder"
rm -f pan* ./*.trail

# -DNOCOMP: states are stored as they are. (A search for cycles cannot do that.)
case $search in
  safety) options=(-DSAFETY -DNOCOMP) arguments=(-m200000) ;;
  cycles) options=(-DNP -DNFAIR=3) arguments=(-m200000 -l -f) ;;
  *)      echo "which search is '$search'?" >&2; exit 2 ;;
esac
spin "$@" -a "$model"
# Two long functions, of which one runs once, would take the optimiser longer than they gain.
sed -i -E 's/^(settable|do_transit)\(.*\)$/__attribute__((optimize("O0"))) &/' pan.t pan.c
# shellcheck disable=SC2086 # words
$compiler -w -DMEMLIM=1500 "${options[@]}" -o pan pan.c
./pan "${arguments[@]}" | tee found | grep -E '^pan|errors:|states, stored|total actual memory' || true

if [[ $expected == nothing ]]; then
  grep -q 'errors: 0' found && ! grep -Eq 'not completed|too small|out of memory' found && exit 0
  echo "the model does not hold: ${*:-as it is}" >&2
elif grep -q 'errors: 1' found && grep -Fq "$expected" found; then
  exit 0
else
  echo "expected '$expected' of the model with $*: it cannot tell right from wrong" >&2
fi
trail=("$(basename "$model")".trail)
[[ ! -e ${trail[0]} ]] || spin "$@" -k "${trail[0]}" -p "$model" | grep -v '^spin:' | cut -c1-120 | tail -n 80
exit 1
