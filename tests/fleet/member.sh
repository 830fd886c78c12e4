#!/bin/sh
# member.sh URL NAMES SHARED LOG WORKER LEASE_MS PROGRAM: the same with the command-line program, which runs each hold as a command. Where
# the lease is lost, as on a machine that stands still, the program ends the command before others are in: the log says so. Where it
# stops, the command goes on.
export WORKER="$5" LEADER=$$ STOP="$4.stop.$5" LOG BEGINS ENDS
IFS=,
end="$4.end"
url=$1
log=$4
lease="$6ms"
program=$7

# turn NAME BEGINS ENDS [OPTION]
turn() {
  ! [ -e "$end" ] || exit 0
  LOG="$log.$1" BEGINS=$2 ENDS=$3
  # shellcheck disable=SC2016
  "$program" run "$1" ${4:+"$4"} --store "$url" --ttl "$lease" -c \
    'trap "echo kill $WORKER >>\"$LOG\"; echo go $WORKER >>\"$LOG\"; exit 143" TERM
     echo "$BEGINS $WORKER $HOLDFAST_FENCE" >>"$LOG"; ! [ -e "$STOP" ] || kill -STOP "$LEADER" $PPID
     echo "$ENDS $WORKER $HOLDFAST_FENCE" >>"$LOG"' || [ $? = 79 ] || exit 1
}

while true; do
  for name in $2; do turn "$name" enter leave; done
  turn "$3" read 'done' -s
  turn "$3" enter leave -x
done
