"""Helpers of several test files."""
import concurrent.futures
import os
import subprocess
import sys

from stores import REPOSITORY, OnAStore


def await_waiters(session, name, count, goes_on):
    while session.show(name).waiters < count:
        if not goes_on():
            raise AssertionError("it ended without waiting")


def interrupted(function):
    """The function, followed by a Ctrl-C at the moment of its return."""
    def and_then(*arguments):
        function(*arguments)
        raise KeyboardInterrupt
    return and_then


def on_another_thread(work):
    """Runs `work` on another thread. Its exception is raised here."""
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        return other.submit(work).result()


class InAProgram(OnAStore):
    """Tests that need a program of their own."""
    store = "sqlite"

    def run_python(self, code, **how):
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "bindings/python"), "URL": self.url, "PREFIX": self.prefix}
        head = "import holdfast, os\nstore = holdfast.open(os.environ['URL'], name_prefix=os.environ['PREFIX'])\n"
        return subprocess.Popen([sys.executable, "-B", "-c", head + code], env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **how)
