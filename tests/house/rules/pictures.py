"""The pictures and figures of the documents are those that their scripts make."""
import subprocess
import sys

from .tree import Finding

BY_HAND = ": what is changed by hand is lost when the script runs again; change the script"
SCRIPTS = {"docs/pictures/draw.py": BY_HAND, "docs/pictures/of_page.py": "", "bench/report.py": BY_HAND}


def check(tree):
    for script in filter(None, map(tree.get, SCRIPTS)):
        checked = subprocess.run([sys.executable, "-B", str(script.full), "--check"], capture_output=True, text=True)
        if checked.returncode:
            yield Finding(script.path, 1, "pictures", checked.stderr.strip() + SCRIPTS[script.path])
