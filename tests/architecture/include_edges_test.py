"""Rooms include and link only along the edges of the picture in ARCHITECTURE.md."""

import re
import unittest

import source_tree

EDGES = {
    "launcher": {"model", "data", "optim", "checkpoints", "distributed"},
    "model": set(),
    "data": set(),
    "optim": set(),
    "checkpoints": {"distributed"},
    "distributed": set(),
}
# Tests and benchmarks may use every room; cmake/ holds the precompiled header's source.
OUTSIDE = {"tests", "bench", "cmake"}


def include_violations(root):
    for path in source_tree.code_files(root):
        room = path.parts[0]
        if room not in EDGES and room not in OUTSIDE:
            yield f"{path}: {room}/ is no room of the house"
            continue
        for line, name, quoted in source_tree.includes(root, path):
            target = name.split("/")[0]
            if quoted and not (root / name).is_file():
                yield f'{path}:{line}: "{name}" is not a path from the root'
            elif target in EDGES and not quoted:
                yield f"{path}:{line}: <{name}> is ours: quotation marks"
            elif room in EDGES and quoted and target != room and target not in EDGES[room]:
                yield f"{path}:{line}: {room} may not include {target}"


def link_violations(root):
    for path in source_tree.files(root):
        room = path.parts[0]
        if path.name != "CMakeLists.txt" or room not in EDGES:
            continue
        without_comments = re.sub(r"#[^\n]*", "", source_tree.text(root, path))
        for target in re.findall(r"\btupelo_(\w+)\b", without_comments):
            if target in EDGES and target != room and target not in EDGES[room]:
                yield f"{path}: {room} may not link tupelo_{target}"


class IncludeEdges(source_tree.PlantedTree):
    def test_the_tree_keeps_to_the_edges(self):
        self.assertEqual(list(include_violations(source_tree.ROOT)), [])

    def test_the_targets_keep_to_the_edges(self):
        self.assertEqual(list(link_violations(source_tree.ROOT)), [])

    def test_every_room_was_read(self):
        rooms = {path.parts[0] for path in source_tree.code_files(source_tree.ROOT)}
        self.assertEqual(set(EDGES) - rooms, set())

    def test_catches_an_edge_against_the_picture(self):
        root = self.plant({"model/a.h": '#include "data/b.h"\n', "data/b.h": ""})
        self.assertEqual(list(include_violations(root)), ["model/a.h:1: model may not include data"])

    def test_catches_an_edge_back_to_the_launcher(self):
        root = self.plant({"optim/a.cpp": '\n  # include "launcher/b.h"', "launcher/b.h": ""})
        self.assertEqual(list(include_violations(root)), ["optim/a.cpp:2: optim may not include launcher"])

    def test_catches_an_include_that_is_not_from_the_root(self):
        root = self.plant({"model/position/a.cpp": '#include "b.h"\n', "model/position/b.h": ""})
        self.assertEqual(list(include_violations(root)),
                         ['model/position/a.cpp:1: "b.h" is not a path from the root'])

    def test_catches_angle_brackets_around_a_room(self):
        root = self.plant({"model/a.cpp": "#include <data/b.h>\n", "data/b.h": ""})
        self.assertEqual(list(include_violations(root)), ["model/a.cpp:1: <data/b.h> is ours: quotation marks"])

    def test_catches_a_new_folder_of_code(self):
        root = self.plant({"utils/a.h": ""})
        self.assertEqual(list(include_violations(root)), ["utils/a.h: utils/ is no room of the house"])

    def test_catches_a_link_against_the_picture(self):
        root = self.plant({"data/CMakeLists.txt": "# tupelo_model\ntupelo_room(data LIBS tupelo_model)\n"})
        self.assertEqual(list(link_violations(root)), ["data/CMakeLists.txt: data may not link tupelo_model"])

    def test_allows_the_edges_of_the_picture(self):
        root = self.plant({"checkpoints/a.cpp": '#include "distributed/b.h"\n#include <vector>\n',
                           "distributed/b.h": "", "tests/data/t.cpp": '#include "distributed/b.h"\n'})
        self.assertEqual(list(include_violations(root)), [])


if __name__ == "__main__":
    unittest.main()
