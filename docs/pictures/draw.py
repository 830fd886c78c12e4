#!/usr/bin/env python3
"""Draws the pictures of the documentation beside itself: draw.py; with --check it only says whether they are up to date.

The colours follow the reader's scheme (light or dark), by a style sheet in each picture.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
STYLE = """<style>
text{font:14px system-ui,sans-serif;fill:#1f2328}.small{font-size:12px;fill:#59636e}.b{font-weight:600}
.line{stroke:#818b98;stroke-width:1.5;fill:none}.box{fill:#f6f8fa;stroke:#818b98}
.held{fill:#2da44e}.paused{fill:#d4a72c}.bad{fill:#cf222e}.badline{stroke:#cf222e;stroke-width:2;fill:none}
.goodline{stroke:#2da44e;stroke-width:2;fill:none}text.bad{fill:#cf222e}text.good{fill:#1a7f37}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.line{stroke:#6e7681}.box{fill:#161b22;stroke:#6e7681}
.held{fill:#3fb950}.paused{fill:#d29922}.bad{fill:#f85149}.badline{stroke:#f85149}.goodline{stroke:#3fb950}
text.bad{fill:#f85149}text.good{fill:#3fb950}}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
<path d="M0 0 8 4 0 8z" fill="#818b98"/></marker></defs>"""


class Picture:
    def __init__(self, width, height, title, described=""):
        self.width, self.height, self.title, self.parts = width, height, title, []
        self.described = f"<desc>{described}</desc>" if described else ""

    def text(self, x, y, words, kind="", anchor="start"):
        self.parts.append(f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>')

    def line(self, x1, y1, x2, y2, kind="line", tip=False):
        end = ' marker-end="url(#tip)"' if tip else ""
        self.parts.append(f'<path d="M{x1} {y1} {x2} {y2}" class="{kind}"{end}/>')

    def bar(self, x, y, width, height, kind):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" class="{kind}"/>')

    def box(self, x, y, width, words, note=""):
        """A box with its words in the middle; the note stands below them."""
        self.bar(x, y, width, 52 if note else 36, "box")
        self.text(x + width / 2, y + 23, words, "b", "middle")
        if note:
            self.text(x + width / 2, y + 41, note, "small", "middle")

    def svg(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'height="{self.height}" role="img"><title>{self.title}</title>{self.described}')
        return "\n".join([head, STYLE, *self.parts, "</svg>"]) + "\n"


def fence():
    p = Picture(760, 250, "A paused holder, and the fence that keeps its late write out")
    for y, name in ((50, "process A"), (110, "process B"), (190, "the resource")):
        p.text(8, y + 5, name, "b")
        p.line(120, y, 750, y)
    p.bar(130, 40, 120, 20, "held")
    p.bar(250, 40, 290, 20, "paused")
    p.text(190, 30, "holds, fence 33", "small", "middle")
    p.text(395, 30, "paused: its lease ends meanwhile", "small", "middle")
    p.bar(350, 100, 330, 20, "held")
    p.text(440, 92, "holds, fence 34", "small", "middle")
    p.line(170, 60, 170, 184, "goodline", tip=True)
    p.text(178, 158, "write 33", "good")
    p.line(430, 120, 430, 184, "goodline", tip=True)
    p.text(438, 158, "write 34", "good")
    p.line(560, 60, 560, 184, "badline", tip=True)
    p.text(568, 158, "write 33: refused", "bad")
    for x, words in ((170, "has seen 33"), (430, "has seen 34"), (572, "33 is less than 34")):
        p.text(x, 214, words, "small", "middle")
    p.text(750, 240, "time →", "small", "end")
    return p


def lease_states():
    p = Picture(760, 210, "The states of a lease")
    p.box(30, 60, 130, "held", "renewed each third")
    p.box(310, 60, 150, "suspect", "the lease still runs")
    p.box(610, 60, 130, "lost", "for good")
    p.box(30, 158, 130, "released")
    p.line(160, 76, 306, 76, tip=True)
    p.text(233, 68, "a renewal fails", "small", "middle")
    p.line(310, 100, 164, 100, tip=True)
    p.text(233, 116, "a renewal succeeds", "small", "middle")
    p.line(460, 86, 606, 86, tip=True)
    p.text(533, 78, "the lease is ending", "small", "middle")
    p.line(95, 112, 95, 154, tip=True)
    p.text(104, 138, "release()", "small")
    p.parts.append('<path d="M95 60V26H675V56" class="line" marker-end="url(#tip)"/>')
    p.text(385, 18, "the store says that another session holds it", "small", "middle")
    return p


def hand_over():
    p = Picture(760, 270, "A hand-over between processes, and one inside a process")
    for x, name in ((120, "process A"), (380, "the store"), (640, "process B")):
        p.text(x, 24, name, "b", "middle")
        p.line(x, 34, x, 190)
    for y, begin, end, words in ((64, 120, 376, "release"), (96, 380, 636, "notification: granted, secret of A"),
                                 (128, 640, 384, "without a secret: is it mine?"), (160, 380, 636, "yes, with fence 34")):
        p.line(begin, y, end, y, tip=True)
        p.text((begin + end) / 2, y - 6, words, "small", "middle")
    p.text(380, 208, "Between processes: the release grants to the next waiter in the same step.", "", "middle")
    p.text(380, 236, "Inside a process the next thread gets a greater fence, without a message to the store.", "small", "middle")
    return p


def chooser():
    p = Picture(760, 300, "Which store")
    questions = (("Do all programs run on one host?", "SQLite"),
                 ("Must no failover ever let two holders in?", "ZooKeeper or etcd"),
                 ("Do you run Redis?", "Redis"),
                 ("Do you run PostgreSQL, or MariaDB?", "that one"))
    for i, (question, answer) in enumerate(questions):
        y = 10 + 60 * i
        p.box(20, y, 400, question)
        p.line(420, y + 18, 536, y + 18, tip=True)
        p.text(478, y + 11, "yes", "small", "middle")
        p.box(540, y, 200, answer)
        p.line(220, y + 36, 220, y + 56, tip=True)
        p.text(230, y + 52, "no", "small")
    p.box(20, 250, 720, "memcached, if a lock may be forgotten; else set up one of the above")
    return p


def main():
    stale = []
    for draw in (fence, lease_states, hand_over, chooser):
        file = HERE / (draw.__name__ + ".svg")
        svg = draw().svg()
        if sys.argv[1:] == ["--check"]:
            if not file.exists() or file.read_text(encoding="utf-8") != svg:
                stale.append(file.name)
        else:
            file.write_text(svg, encoding="utf-8")
    if stale:
        sys.exit(f"not as drawn: {', '.join(stale)}; run docs/pictures/draw.py")


if __name__ == "__main__":
    main()
