"""What the guides name exists: links, files, folders. And no file names a place on somebody's machine."""

import re
import unittest

import source_tree

GUIDES = ("ARCHITECTURE.md", "README.md", "CONTRIBUTING.md")
# Names that belong to a user's machine, a build or a run rather than to the tree.
ELSEWHERE = re.compile(r"(?:[~$/<]|\.\./|build/|quickstart/|[A-Z]+/).*|https?:.*|nvidia/.*")
SOURCE_SUFFIX = re.compile(r".*\.(h|cpp|cu|py|md|cmake|\{h,cpp\})")
PATH = re.compile(r"[\w.-]+(?:/[\w.{},*-]+)*/?")
MACHINE_PATHS = re.compile("(?<![\\w./])/(?:" + "|".join(["work", "root", "farm", r"home/\w+"]) + ")/")


def expanded(name):
    """a.{h,cpp} -> a.h, a.cpp"""
    match = re.search(r"\{([^}]*)\}", name)
    if not match:
        return [name]
    return [name[:match.start()] + part + name[match.end():] for part in match[1].split(",")]


def exists(root, name):
    return all(any(root.glob(part.rstrip("/"))) for part in expanded(name))


def named_in_code_span(span):
    for word in re.split(r"[\s:()=\"']+|,(?![^{]*\})", span):
        looks_like_path = "/" in word or SOURCE_SUFFIX.fullmatch(word)
        if PATH.fullmatch(word) and looks_like_path and not ELSEWHERE.fullmatch(word):
            yield word


def named_in_block(block, folders):
    for word in re.findall(r"(?<![\w./~$-])[\w.-]+/[\w./{},*-]*", block):
        if word.split("/")[0] in folders:
            yield word


def tour_violations(root):
    folders = {path.parts[0] for path in source_tree.files(root) if len(path.parts) > 1}
    for guide in GUIDES:
        if not (root / guide).is_file():
            yield f"{guide} is missing"
            continue
        text = source_tree.text(root, guide)
        blocks = re.findall(r"^```.*?\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
        prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
        names = [name for block in blocks for name in named_in_block(block, folders)]
        for span in re.findall(r"`([^`\n]+)`", prose):
            names += named_in_code_span(span)
        yield from (f"{guide}: {name} does not exist" for name in sorted(set(names)) if not exists(root, name))


def link_violations(root):
    """Relative links of every page, seen from the page."""
    for page in source_tree.files(root):
        if page.suffix == ".md" and page.parts[:2] != ("tests", "data"):
            prose = re.sub(r"^```.*?^```", "", source_tree.text(root, page), flags=re.DOTALL | re.MULTILINE)
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
                if not re.match(r"[a-z]+:", link) and not (root / page.parent / link).exists():
                    yield f"{page}: {link} does not exist"


def unnamed_rooms(root):
    tour = source_tree.text(root, "ARCHITECTURE.md")
    folders = {path.parts[0] for path in source_tree.files(root) if len(path.parts) > 1}
    return sorted(folder for folder in folders if not re.search(rf"(?<![\w/]){re.escape(folder)}/", tour))


def machine_path_violations(root):
    for path in source_tree.files(root):
        if path.parts[:2] == ("tests", "data"):
            continue  # texts and vectors, not names of ours
        for number, line in enumerate(source_tree.text(root, path).splitlines(), 1):
            match = MACHINE_PATHS.search(line)
            if match:
                yield f"{path}:{number}: names {match[0]}"


class Tour(source_tree.PlantedTree):
    def test_the_guides_name_what_exists(self):
        self.assertEqual(list(tour_violations(source_tree.ROOT)), [])

    def test_links_lead_somewhere(self):
        self.assertEqual(list(link_violations(source_tree.ROOT)), [])

    def test_the_tour_passes_every_folder(self):
        self.assertEqual(unnamed_rooms(source_tree.ROOT), [])

    def test_no_file_names_a_machine(self):
        self.assertEqual(list(machine_path_violations(source_tree.ROOT)), [])

    def plant_guides(self, text):
        return self.plant({"ARCHITECTURE.md": text, "README.md": "", "CONTRIBUTING.md": "",
                           "model/encoder.h": "", "model/encoder.cpp": ""})

    def test_catches_what_does_not_exist(self):
        for text, name in (("see `model/gone.h`", "model/gone.h"),
                           ("`luancher/`", "luancher/"), ("`gone.cpp`", "gone.cpp"),
                           ("`model/encoder.{h,cu}`", "model/encoder.{h,cu}"),
                           ("```\ncat model/gone.ini\n```", "model/gone.ini")):
            with self.subTest(text):
                self.assertEqual(list(tour_violations(self.plant_guides(text))),
                                 [f"ARCHITECTURE.md: {name} does not exist"])

    def test_catches_a_broken_link(self):
        root = self.plant({"docs/a.md": "[x](../model/gone.h) [b](b.md#part) [web](https://example.org/x)\n"
                                        "[y](../model/here.h) [self](#part)\n", "model/here.h": ""})
        self.assertEqual(list(link_violations(root)),
                         ["docs/a.md: ../model/gone.h does not exist", "docs/a.md: b.md does not exist"])

    def test_passes_what_exists_or_lives_elsewhere(self):
        text = ("[a](model/encoder.h) [web](https://example.org/x) `model/encoder.{h,cpp}` `model/*.h` `~/.cache/x`\n"
                "`RUN/metrics.jsonl` `build/release/launcher/tupelo` `--position 0-5:none,6-11:tupe-r` `and`\n")
        self.assertEqual(list(tour_violations(self.plant_guides(text))), [])

    def test_catches_a_missing_guide(self):
        root = self.plant({"README.md": "", "CONTRIBUTING.md": ""})
        self.assertEqual(list(tour_violations(root)), ["ARCHITECTURE.md is missing"])

    def test_catches_a_folder_that_the_tour_leaves_out(self):
        root = self.plant({"ARCHITECTURE.md": "`model/` is here", "model/a.h": "", "optim/a.h": ""})
        self.assertEqual(unnamed_rooms(root), ["optim"])

    def test_catches_a_machine_path(self):
        for folder in ("work", "root", "home/somebody"):
            with self.subTest(folder):
                root = self.plant({"scripts/a": f"first\ncd /{folder}/x\n"})
                self.assertEqual(list(machine_path_violations(root)), [f"scripts/a:2: names /{folder}/"])


if __name__ == "__main__":
    unittest.main()
