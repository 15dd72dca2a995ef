"""Every file of reference vectors is read by a test, and every case comes in both precisions."""

import os
import pathlib
import re
import unittest

import source_tree


def cases(folder):
    names = {}
    for path in pathlib.Path(folder).glob("*.safetensors"):
        name, precision = path.name.split(".")[:2]
        names.setdefault(name, set()).add(precision)
    return names


def literals(root):
    """The string literals of all test sources."""
    found = set()
    for path in source_tree.code_files(root):
        if path.parts[0] == "tests":
            found.update(re.findall(r'"([^"\n]*)"', (root / path).read_text()))
    return found


class RefvecCoverage(source_tree.PlantedTree):
    def folder(self):
        return os.environ.get("TUPELO_REFVEC") or source_tree.ROOT / "tests/data/refvec"

    def test_every_case_is_named_by_a_test(self):
        known = cases(self.folder())
        self.assertGreater(len(known), 0, "no reference vectors found")
        self.assertEqual(sorted(set(known) - literals(source_tree.ROOT)), [])

    def test_every_case_has_both_precisions(self):
        incomplete = {name: found for name, found in cases(self.folder()).items() if found != {"f32", "f64"}}
        self.assertEqual(incomplete, {})

    def test_finds_a_case_that_nobody_reads(self):
        root = self.plant({"tests/model/a_test.cpp": 'Refvec::load("rope", type)'})
        self.assertEqual({"rope", "t5_bias"} - literals(root), {"t5_bias"})


if __name__ == "__main__":
    unittest.main()
