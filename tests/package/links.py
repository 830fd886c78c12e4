"""links.py FOLDER: each relative link of the pages in the folder, packed or not, leads to a file in it."""
import gzip
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1]).resolve()
pages, dead = 0, []
for page in sorted([*folder.rglob("*.md"), *folder.rglob("*.md.gz")]):
    pages += 1
    content = page.read_bytes()
    text = (gzip.decompress(content) if page.suffix == ".gz" else content).decode()
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.S | re.M)
    targets = re.findall(r"\]\(([^)\s#]+)", prose) + re.findall(r"^\s*\[[^\]]+\]:\s+(\S+)", prose, re.M)
    for target in targets + re.findall(r'\b(?:src|href)="([^"#]+)', prose):
        there = (page.parent / target).resolve()
        if not re.match(r"[a-z][a-z0-9+.-]*:", target) and not (there.is_relative_to(folder) and there.exists()):
            dead.append(f"{page.relative_to(folder)}: {target} leads nowhere")
print("\n".join(dead or [f"{pages} pages, and each of their links leads to a file"]))
sys.exit(1 if dead or not pages else 0)
