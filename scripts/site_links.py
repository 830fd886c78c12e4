"""Where the pages of a site lead to."""
import html.parser
import urllib.parse


class Links(html.parser.HTMLParser):
    """Where a page leads to, and the places in it that others may lead to."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.places = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        self.targets |= {given[name] for name in ("href", "src") if given.get(name)}


def dead_links(site):
    """Each link of the pages to a file or place that is not there. What Doxygen makes is only led to."""
    seen = {page: Links(page.read_text(encoding="utf-8", errors="replace")) for page in site.rglob("*.html")}
    for page, links in seen.items():
        if page.is_relative_to(site / "api") or page.name == "404.html":
            continue
        for target in links.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            if not there.is_file():
                yield f"{page.relative_to(site)}: {target} leads nowhere"
            elif parts.fragment and there in seen and urllib.parse.unquote(parts.fragment) not in seen[there].places:
                yield f"{page.relative_to(site)}: there is no place {target}"
