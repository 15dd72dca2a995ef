"""The files of the tree that the architecture tests read, and code without its comments and strings."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
BUILT = ("build", "quickstart", ".cache", "__pycache__")


def files(root):
    """Paths relative to `root`, sorted: what git tracks or would track, without a repository all files."""
    git = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if git.returncode == 0 and (root / ".git").exists():
        paths = {pathlib.PurePosixPath(name) for name in git.stdout.split("\0") if name}
    else:
        paths = {pathlib.PurePosixPath(path.relative_to(root)) for path in root.rglob("*")}
    return sorted(path for path in paths
                  if (root / path).is_file() and not set(path.parts) & {".git", *BUILT})


def code_files(root):
    return [path for path in files(root) if path.suffix in CODE_SUFFIXES]


def text(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


def code(root, path):
    """The file's text with comments and the insides of string literals blanked; lines keep their numbers."""
    def blank(match):
        if match[0].startswith("/"):
            return re.sub(r"[^\n]", " ", match[0])
        return '""' + "\n" * match[0].count("\n")

    return re.sub(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', blank, text(root, path),
                  flags=re.DOTALL)


def includes(root, path):
    """(line number, name, whether it is in quotation marks) of each include directive."""
    for number, line in enumerate(text(root, path).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match[2], match[1] == '"'


class PlantedTree(unittest.TestCase):
    """For tests that plant a violation in a tree of their own: plant({"model/a.h": "text", ...})."""

    def plant(self, contents):
        import tempfile
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for name, content in contents.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, encoding="utf-8")
        return root
