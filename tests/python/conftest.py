"""Lets pytest run these tests, too: `HOLDFAST_LIBRARY=build/gcc/libholdfast-c.so.0 pytest tests/python`. CTest uses run.py."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings/python"))
