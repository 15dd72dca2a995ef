"""Third-party headers stay in the room that owns them, and only launcher/ prints or exits."""

import re
import unittest

import source_tree

# (what is walled in, pattern of the include's name, paths that may). Tests mirror the tree, so
# tests/<room>/ may do what <room>/ may.
WALLS = [
    ("MPI", r"mpi(-ext)?\.h|mpi/.*", r"(distributed/.*|bench/allreduce\.cpp)"),  # MPI's own sum, to compare
    ("NCCL", r"nccl(_.*)?\.h|nccl/.*", r"(distributed|emulated_gpu)/.*"),  # tests/emulated_gpu/ stands for it
    ("Boost", r"boost/.*", r"launcher/.*"),
    ("HDF5", r"(hdf5|H5\w*)\.h|hdf5/.*", r"data/hdf5(_library)?\.(h|cpp)"),
    ("zlib", r"zlib\.h", r"data/(input/.*|preparation/token_part\.cpp|import/chunk_filters\.cpp|hostile_hdf5_test\.cpp)"),
    ("zstd", r"zstd(_errors)?\.h", r"data/(input/.*|archive/zstd_file\.cpp)"),
    ("libxml2", r"libxml/.*", r"data/input/html_text\.cpp"),
    ("ICU", r"unicode/.*", r"data/(input/transcoder|cleaning/characters)\.cpp"),
    ("SentencePiece", r"sentencepiece_.*\.h", r"data/tokenizer/sentencepiece(_test)?\.cpp"),
    ("GoogleTest", r"g(test|mock)/.*", r"(tests|bench)/.*"),
    ("<iostream>", r"iostream", r"launcher/.*"),
]
PRINTS = re.compile(
    r"\bstd::(cout|cerr|clog|print|println)\b"
    r"|(?<![\w.>])(v?f?printf|puts|fputs|putchar|perror)\s*\("
    r"|\b(stdout|stderr)\b")
EXITS = re.compile(
    r"(?<![\w.>:])(?:std::|::)?(_?exit|_Exit|quick_exit)\s*\("
    r"|(?<![\w:])(?:std)?::(abort|terminate)\s*\(")  # unqualified: a member of ours
SPEAKERS = re.compile(r"(launcher|tests|bench)/.*")
# MpiRuntime::abort ends every rank of a job; the launcher decides when.
MAY_EXIT = "distributed/runtime.cpp"


def may(path, allowed):
    mirrored = path.as_posix().removeprefix("tests/")
    if path.parts[0] == "tests" and allowed.startswith("data/hdf5"):
        return mirrored.startswith("data/")
    return re.fullmatch(allowed, path.as_posix()) or re.fullmatch(allowed, mirrored)


def wall_violations(root):
    for path in source_tree.code_files(root):
        for line, name, _ in source_tree.includes(root, path):
            for library, pattern, allowed in WALLS:
                speaks = library == "<iostream>" and SPEAKERS.fullmatch(path.as_posix())
                if re.fullmatch(pattern, name) and not may(path, allowed) and not speaks:
                    yield f"{path}:{line}: {library} ({name}) is behind the wall of {allowed}"


def speech_violations(root):
    for path in source_tree.code_files(root):
        if SPEAKERS.fullmatch(path.as_posix()):
            continue
        for number, line in enumerate(source_tree.code(root, path).splitlines(), 1):
            if PRINTS.search(line):
                yield f"{path}:{number}: prints"
            if EXITS.search(line) and path.as_posix() != MAY_EXIT:
                yield f"{path}:{number}: exits"


class ThirdPartyWalls(source_tree.PlantedTree):
    def test_the_tree_keeps_the_walls(self):
        self.assertEqual(list(wall_violations(source_tree.ROOT)), [])

    def test_only_the_launcher_prints_and_exits(self):
        self.assertEqual(list(speech_violations(source_tree.ROOT)), [])

    def test_the_owners_were_read(self):
        used = {name for path in source_tree.code_files(source_tree.ROOT)
                for _, name, _ in source_tree.includes(source_tree.ROOT, path)}
        self.assertEqual({"mpi.h", "nccl.h", "hdf5.h", "boost/program_options.hpp"} - used, set())

    def test_catches_each_header_outside_its_room(self):
        for header in ("mpi.h", "nccl.h", "boost/program_options.hpp", "hdf5.h", "H5Dpublic.h",
                       "gtest/gtest.h", "iostream"):
            with self.subTest(header):
                root = self.plant({"model/a.h": f"#pragma once\n#include <{header}>\n"})
                found = list(wall_violations(root))
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith("model/a.h:2: "), found)

    def test_catches_hdf5_elsewhere_in_its_own_folder(self):
        root = self.plant({"data/corpus.cpp": "#include <hdf5.h>\n", "data/hdf5.cpp": "#include <hdf5.h>\n"})
        self.assertEqual([found.split(":")[0] for found in wall_violations(root)], ["data/corpus.cpp"])

    def test_catches_printing_and_exiting(self):
        for statement in ("std::cout << 1;", 'printf("x");', 'std::fprintf(stderr, "x");', "std::exit(1);",
                          "exit(1);", "::_exit(1);", "std::abort();", "::abort();", "std::_Exit(1);", "std::quick_exit(2);", 'puts("");'):
            with self.subTest(statement):
                root = self.plant({"optim/a.cpp": f"void f() {{\n  {statement}\n}}\n"})
                found = list(speech_violations(root))
                self.assertEqual([line.rsplit(":", 1)[0] for line in found], ["optim/a.cpp:2"])

    def test_leaves_words_in_comments_and_strings_alone(self):
        root = self.plant({"optim/a.cpp": '// exit(1)\n/* std::cout\n */\nauto s = "exit(1) printf(";\n'
                                          'std::snprintf(b, 1, "");\nruntime.abort(3);\n'
                                          "void Handle::abort() { abort(1); }\n"})
        self.assertEqual(list(speech_violations(root)), [])

    def test_lets_the_owners_in(self):
        root = self.plant({"distributed/a.cpp": "#include <mpi.h>\n", "tests/distributed/a.cpp": "#include <mpi.h>\n",
                           "launcher/m.cpp": "#include <boost/x.hpp>\n#include <iostream>\nint x = exit(1);\n",
                           "tests/data/h.cpp": "#include <hdf5.h>\n#include <gtest/gtest.h>\n"})
        self.assertEqual(list(wall_violations(root)) + list(speech_violations(root)), [])


if __name__ == "__main__":
    unittest.main()
