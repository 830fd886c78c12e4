#!/usr/bin/env python3
"""Holds many names until its stdin ends: crowd.py URL COUNT. Says a line when it has them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"))
import holdfast  # noqa: E402


def main():
    url, count = sys.argv[1], int(sys.argv[2])
    with holdfast.open(url) as store:
        # Leases that are renewed now and then, as those of a fleet are.
        options = [holdfast.LockOptions(lease=300, reason=f"import {n}") for n in range(count)]
        held = [store.mutex(f"order:{n:05}", options=o).acquire() for n, o in enumerate(options)]
        print(f"has {len(held)}", flush=True)
        sys.stdin.read()
        for lease in held:
            lease.release()


if __name__ == "__main__":
    main()
