#!/usr/bin/env python3
"""Builds the site from README.md, docs and the headers, without a warning, and checks every link in it (make docs).

site.py FOLDER    FOLDER/site is the site; FOLDER/pages is what MkDocs reads

The pages are copied with the folders that they have in the repository, so that their links stay right. A link to a source becomes a link
to a page that shows it, or to the page of a public header in the API reference. docs/README.md is the navigation.
"""
import html
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

from site_links import dead_links

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".h": "c", ".py": "python", ".sh": "sh", ".lua": "lua", ".sql": "sql", ".js": "js"}
API = "headers.md"

CONFIG = """
site_name: holdfast
site_description: The standard library's synchronization primitives, across processes and machines
docs_dir: pages
site_dir: site
use_directory_urls: false
theme:
  name: material
  font: false
  icon: {logo: material/lock-outline}
  features: [navigation.sections, navigation.top]
  palette:
    - {media: "(prefers-color-scheme: light)", scheme: default, primary: indigo,
       toggle: {icon: material/weather-night, name: dark}}
    - {media: "(prefers-color-scheme: dark)", scheme: slate, primary: indigo,
       toggle: {icon: material/weather-sunny, name: light}}
plugins: [search]
extra_css: [wide.css]
markdown_extensions:
  - tables
  - sane_lists
  - pymdownx.superfences
  - pymdownx.highlight
  - toc: {permalink: true, slugify: !!python/name:pymdownx.slugs.uslugify }
"""

# The lines of examples have up to 100 columns.
WIDE = ".md-grid { max-width: 84rem } .md-typeset pre > code { font-size: .76em }\n"

DOXYFILE = """
PROJECT_NAME = holdfast
PROJECT_BRIEF = "The public headers"
INPUT = {root}/include/holdfast
RECURSIVE = YES
FILE_PATTERNS = *.hpp *.h
STRIP_FROM_PATH = {root}/include
STRIP_FROM_INC_PATH = {root}/include
# Doxygen does not know the class template that this one specializes.
INPUT_FILTER = "sed -z 's/template <>.struct std::[^;]*;//'"
EXCLUDE_SYMBOLS = holdfast::detail holdfast::engine
OUTPUT_DIRECTORY = {out}
HTML_OUTPUT = pages/api
GENERATE_TAGFILE = {out}/headers.xml
GENERATE_LATEX = NO
HAVE_DOT = NO
CLASS_GRAPH = NO
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
QUIET = YES
WARN_AS_ERROR = FAIL_ON_WARNINGS
"""


def header_pages(out):
    """The page of the API reference for each public header."""
    tags = (out / "headers.xml").read_text(encoding="utf-8")
    files = re.findall(r'<compound kind="file">\s*<name>([^<]*)</name>\s*<path>([^<]*)</path>\s*<filename>([^<]*)', tags)
    return {(path + name).removeprefix(f"{ROOT}/include/"): page for name, path, page in files}


def as_python_markdown(text):
    """What GitHub understands and Python-Markdown does not: a list right after a paragraph, a bar in the code of a table."""
    lines, fenced = [], False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        item = not fenced and re.match(r"([-*]|\d+\.)\s", line)
        if item and lines and lines[-1].strip() and not re.match(r"\s|[-*]\s|\d+\.\s", lines[-1]):
            lines.append("")
        if not fenced and line.startswith("|"):
            line = re.sub(r"`([^`]*\\\|[^`]*)`", lambda code: "<code>" + html.escape(code[1]).replace("\\|", "&#124;") + "</code>", line)
        lines.append(line)
    return "\n".join(lines) + "\n"


class Stage:
    """The folder that MkDocs reads."""

    def __init__(self, out):
        self.pages, self.headers = out / "pages", header_pages(out)
        self.add(API, self.list_of_headers())
        self.add("wide.css", WIDE)
        for page in [ROOT / name for name in PAGES] + sorted((ROOT / "docs").rglob("*.md")):
            self.add(page.relative_to(ROOT), self.rewritten(page))

    def add(self, name, text):
        place = self.pages / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def list_of_headers(self):
        groups = {"C++": r"holdfast/\w+\.hpp", "C": r".*\.h", "For a store of your own": r"holdfast/store/.*"}
        text = "# API reference\n\nEach function is documented where it is declared: [all classes](api/annotated.html).\n"
        for group, pattern in groups.items():
            names = [name for name in sorted(self.headers) if re.fullmatch(pattern, name)]
            text += f"\n## {group}\n\n" + " ·\n".join(f"[`{name.rpartition('/')[2]}`](api/{self.headers[name]})" for name in names) + "\n"
        return text

    def rewritten(self, page):
        def lead(link):
            return link[1] + self.target(page, link[2]) + link[3]

        lines, fenced = [], False
        for line in as_python_markdown(page.read_text(encoding="utf-8")).splitlines():
            fenced ^= line.startswith("```")
            prose_and_code = re.split(r"(`[^`]*`)", line)
            lines.append(line if fenced else "".join(part if part.startswith("`") else LINK.sub(lead, part) for part in prose_and_code))
        return "\n".join(lines) + "\n"

    def target(self, page, link):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            return link
        there = (page.parent / link).resolve()
        name = there.relative_to(ROOT)
        up = "../" * (len(page.relative_to(ROOT).parts) - 1)
        if there.suffix == ".md":
            if not (self.pages / name).exists() and name.parts[0] != "docs" and str(name) not in PAGES:
                self.add(name, self.rewritten(there))
            return link
        if there.is_dir():
            return up + (API if name.parts[0] == "include" else self.listing(there))
        if there.suffix in (".svg", ".png"):
            (self.pages / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(there, self.pages / name)
            return link
        if str(name).removeprefix("include/") in self.headers:
            return up + "api/" + self.headers[str(name).removeprefix("include/")]
        self.add(f"{name}.md", f"# {name}\n\n````{LANGUAGES.get(there.suffix, 'text')}\n{there.read_text(encoding='utf-8')}````\n")
        return link + ".md"

    def listing(self, folder):
        name = folder.relative_to(ROOT)
        entries = "\n".join(f"- `{one.name}`" for one in sorted(folder.iterdir()))
        self.add(f"{name}/folder.md", f"# {name}\n\n{entries}\n")
        return f"{name}/folder.md"


def navigation():
    """docs/README.md: a group for each bold word, with its links."""
    text = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    lines = ["nav:", "  - overview: README.md"]
    for group, links in re.findall(r"^\*\*(.+?)\*\*: (.+?)(?=^$|\Z)", text, re.S | re.M):
        lines.append(f"  - {group}:")
        for title, page in re.findall(r"\[([^\]]+)\]\(([^)#]+)\)", links):
            lines.append(f'    - "{title.replace("`", "")}": {posixpath.normpath("docs/" + page)}')
    lines += ["  - API reference: " + API, "  - Changes: CHANGELOG.md"]
    return "\n".join(lines) + "\n"


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    for made in ("pages", "site"):
        shutil.rmtree(out / made, ignore_errors=True)
    (out / "pages").mkdir(parents=True)
    doxygen = DOXYFILE.format(root=ROOT, out=out)
    subprocess.run(["doxygen", "-"], input=doxygen, text=True, check=True)
    Stage(out)
    (out / "mkdocs.yml").write_text(CONFIG + navigation(), encoding="utf-8")
    subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--config-file", out / "mkdocs.yml"], check=True)
    dead = sorted(dead_links(out / "site"))
    print("\n".join(dead + [f"{len(dead)} dead links"] if dead else [f"the site is at {out / 'site/index.html'}"]))
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
