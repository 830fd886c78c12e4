#!/bin/sh
# member.sh URL NAME LOG WORKER LEASE_MS PROGRAM: the same with the command-line program, which runs each hold as a command. Where the
# lease is lost, as on a machine that stands still, the program ends the command before others are in: the log says so.
export LOG="$3" WORKER="$4"
while ! [ -e "$LOG.end" ]; do
  # shellcheck disable=SC2016
  "$6" run "$2" --store "$1" --ttl "${5}ms" -c \
    'trap "echo kill $WORKER >>\"$LOG\"; echo go $WORKER >>\"$LOG\"; exit 143" TERM
     echo "enter $WORKER $HOLDFAST_FENCE" >>"$LOG"; echo "leave $WORKER $HOLDFAST_FENCE" >>"$LOG"' || [ $? = 79 ] || exit 1
done
