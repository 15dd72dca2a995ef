#!/usr/bin/env python3
"""Chinese text from ordinary Debian and Ubuntu packages, as plain documents.

usage: gather_text.py OUTPUT ROOT...

Looks below each ROOT (an installed system, or a folder that packages were unpacked into) for what the
packages of SOURCES install, and writes one UTF-8 file: documents separated by a blank line, in a fixed
order. A line that has appeared before, or is mostly not Chinese, is left out. Standard library only.
"""

import gzip
import html.parser
import os
import pathlib
import re
import sys

CHINESE = re.compile("[\u3400-\u9fff]")
LEAST_CHINESE_SHARE = 0.3
LEAST_DOCUMENT_CHARACTERS = 20


def fortunes(path):
    """Sayings and poems, separated by a line with only a percent sign; coloured for terminals."""
    text = re.sub("\x1b\\[[0-9;]*m", "", path.read_text(encoding="utf-8", errors="replace"))
    yield from re.split(r"\n%\s*\n", text)


class HtmlText(html.parser.HTMLParser):
    """Collects the paragraphs of a page; a chapter heading begins a new document."""

    SKIPPED = {"script", "style", "head", "nav", "header", "aside", "footer", "pre", "table"}
    INLINE = {"a", "abbr", "acronym", "b", "code", "em", "i", "kbd", "span", "strong", "tt", "u", "var"}
    HEADINGS = {"h1", "h2", "h3"}

    def __init__(self):
        super().__init__()
        self.documents = [[]]
        self.line = ""
        self.depth_skipped = 0

    def end_line(self):
        line = " ".join(self.line.split())
        if line:
            self.documents[-1].append(line)
        self.line = ""

    def handle_starttag(self, tag, attrs):
        if tag in self.SKIPPED:
            self.depth_skipped += 1
        if tag not in self.INLINE:
            self.end_line()
        if tag in self.HEADINGS and self.documents[-1]:
            self.documents.append([])

    def handle_endtag(self, tag):
        if tag in self.SKIPPED:
            self.depth_skipped = max(0, self.depth_skipped - 1)
        if tag not in self.INLINE:
            self.end_line()

    def handle_data(self, data):
        if not self.depth_skipped:
            self.line += data


def web_page(path):
    page = HtmlText()
    page.feed(path.read_text(encoding="utf-8", errors="replace"))
    page.close()
    page.end_line()
    for document in page.documents:
        yield "\n".join(document)


ROFF_ESCAPES = [
    (re.compile(r'\\".*'), ""),
    (re.compile(r"\\f(\[[^]]*\]|\(..|.)"), ""),
    (re.compile(r"\\s[-+]?\d+"), ""),
    (re.compile(r"\\\((lq|rq)|\\\*\([lr]q"), '"'),
    (re.compile(r"\\\((aq|cq|oq)"), "'"),
    (re.compile(r"\\(\(..|\[[^]]*\]|\*\(..|\*.)"), ""),
    (re.compile(r"\\[-]"), "-"),
    (re.compile(r"\\[ ~0]"), " "),
    (re.compile(r"\\e"), "\\\\"),
    (re.compile(r"\\."), ""),
]
ROFF_FONT_MACROS = {"B", "I", "BR", "BI", "RB", "RI", "IR", "IB", "SM", "SB"}
ROFF_DROPPED = {"TH", "so", "IX", "de", "ds", "if", "ie", "el", "nr", "Dd", "Dt", "Os"}


def manual_page(path):
    """A manual page's running text, one line for each paragraph."""
    paragraphs = [""]
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as page:
        for line in page:
            macro = re.match(r"[.']\s*([A-Za-z]*)\s*(.*)", line)
            if macro and macro[1] not in ROFF_FONT_MACROS:
                paragraphs.append("")
                if macro[1] in ROFF_DROPPED or macro[1] not in {"SH", "SS", "Sh", "Ss"}:
                    continue
            text = macro[2].replace('"', "") if macro else line.strip()
            for pattern, replacement in ROFF_ESCAPES:
                text = pattern.sub(replacement, text)
            joins_chinese = CHINESE.match(paragraphs[-1][-1:]) and CHINESE.match(text[:1])
            paragraphs[-1] += text if joins_chinese or not paragraphs[-1] else " " + text
    yield "\n".join(paragraphs)


SOURCES = [  # (package, glob of its files, reader)
    ("fortunes-zh", "usr/share/games/fortunes/chinese", fortunes),
    ("fortunes-zh", "usr/share/games/fortunes/tang300", fortunes),
    ("fortunes-zh", "usr/share/games/fortunes/song100", fortunes),
    ("debian-reference-zh-cn", "usr/share/debian-reference/*.zh-cn.html", web_page),
    ("libreoffice-help-zh-cn", "usr/share/libreoffice/help/zh-CN/text/**/*.html", web_page),
    ("manpages-zh", "usr/share/man/zh_CN/**/*.gz", manual_page),
]


def mostly_chinese(line):
    visible = re.sub(r"\s", "", line)
    return bool(visible) and len(CHINESE.findall(visible)) >= LEAST_CHINESE_SHARE * len(visible)


def kept_lines(document, seen):
    for line in document.splitlines():
        line = line.strip()
        if mostly_chinese(line) and line not in seen:
            seen.add(line)
            yield line


def gather(roots, output):
    seen, totals = set(), {}
    for package, pattern, reader in SOURCES:
        root = next((root for root in roots if any(root.glob(pattern))), None)
        for path in sorted(root.glob(pattern)) if root else []:
            for document in reader(path) if path.is_file() and not path.is_symlink() else []:
                text = "\n".join(kept_lines(document, seen))
                if len(text) >= LEAST_DOCUMENT_CHARACTERS:
                    documents, size = totals.get(package, (0, 0))
                    totals[package] = (documents + 1, size + output.write(text.encode() + b"\n\n"))
    return totals


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    target = pathlib.Path(arguments[0])
    unfinished = target.with_name(target.name + ".tmp")
    with open(unfinished, "wb") as output:
        totals = gather([pathlib.Path(root) for root in arguments[1:]], output)
    if not totals:
        unfinished.unlink()
        print("no text found: none of the packages is below " + " ".join(arguments[1:]), file=sys.stderr)
        return 1
    os.replace(unfinished, target)
    for package, (documents, size) in totals.items():
        print(f"  {package:24} {documents:6,} documents {size / 1e6:6.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
