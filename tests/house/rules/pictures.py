"""The pictures of the documents are those that their script draws."""
import subprocess
import sys

from .tree import Finding

SCRIPT = "docs/pictures/draw.py"


def check(tree):
    script = tree.get(SCRIPT)
    if not script:
        return
    checked = subprocess.run([sys.executable, "-B", str(script.full), "--check"], capture_output=True, text=True)
    if checked.returncode:
        yield Finding(SCRIPT, 1, "pictures", f"{checked.stderr.strip()}: a picture that is changed by hand is lost when the next "
                      "one is drawn; change the script")
