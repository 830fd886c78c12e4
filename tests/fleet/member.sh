#!/bin/sh
# member.sh URL NAMES LOG WORKER LEASE_MS PROGRAM: the same with the command-line program, which runs each hold as a command. Where the
# lease is lost, as on a machine that stands still, the program ends the command before others are in: the log says so. Where it
# stops, the command goes on.
export WORKER="$4" LEADER=$$ STOP="$3.stop.$4"
IFS=,
while true; do
  for name in $2; do
    ! [ -e "$3.end" ] || exit 0
    export LOG="$3.$name"
    # shellcheck disable=SC2016
    "$6" run "$name" --store "$1" --ttl "${5}ms" -c \
      'trap "echo kill $WORKER >>\"$LOG\"; echo go $WORKER >>\"$LOG\"; exit 143" TERM
       echo "enter $WORKER $HOLDFAST_FENCE" >>"$LOG"; ! [ -e "$STOP" ] || kill -STOP "$LEADER" $PPID
       echo "leave $WORKER $HOLDFAST_FENCE" >>"$LOG"' || [ $? = 79 ] || exit 1
  done
done
