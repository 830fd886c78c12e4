"""Shares a lock on memcached over a bare socket: adds the key, removes exactly what it added. Arguments: port, name,
guard."""
import os
import socket
import sys
import time
import uuid

import party

server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
replies = server.makefile("rb")
key = "holdfast:" + sys.argv[2]
value = f"hf1 {uuid.uuid4().hex} mutex 1 0 0 host {os.getpid()} python"


def ask(command):
    server.sendall(command.encode())
    return replies.readline().decode().split()


def take(seconds):
    reply = ask(f"ms {key} {len(value)} T{seconds + 1} ME c\r\n{value}\r\n")
    if reply[0] == "HD":
        return reply[1][1:]
    time.sleep(0.003)
    return None


def give_back(number):
    ask(f"md {key} C{number}\r\n")


party.play(take, give_back, sys.argv[3])
