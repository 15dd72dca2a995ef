"""Steps that take rows of one range of lengths."""

import tupelo_runs

USAGE = 2
BINS = {"data__packing": "doc", "data__length_bins": 4, "optim__schedule": "constant", "optim__warmup": 0,
        "train__validate_every": 0}


class LengthBins(tupelo_runs.RunTest):
    documents = 60

    def figures(self, run, key):
        return {record["step"]: record[key] for record in tupelo_runs.records(self.folder / run)}

    def test_ranks_and_a_restart_change_nothing(self):
        options = {**BINS, "data__length_ramp": "20:12", "train__batch_ramp": "8:9"}
        self.train("one", train__steps=40, **options)
        expected = tupelo_runs.losses(self.folder / "one")
        for name, more in (("three", {"ranks": 3}), ("small", {"train__micro_batch": 1})):
            self.train(name, train__steps=40, **more, **options)
            self.assert_close(expected, tupelo_runs.losses(self.folder / name), 1e-5)
            self.assertEqual(self.figures("one", "masks_hash"), self.figures(name, "masks_hash"))
        for steps in (5, 17, 40):
            self.train("parts", train__steps=steps, **options)
        self.assertEqual(expected, tupelo_runs.losses(self.folder / "parts"))
        self.assertEqual(self.figures("one", "masks_hash"), self.figures("parts", "masks_hash"))
        self.assertEqual(len(list((self.folder / "one" / "plans").iterdir())), 2)

    def test_every_row_once_per_epoch(self):
        for name, ranks, stops in (("whole", 1, (60,)), ("halted", 2, (7, 11, 23, 60))):
            for steps in stops:
                self.train(name, ranks=ranks, train__steps=steps, **BINS)
            epochs = tupelo_runs.records(self.folder / name, "epoch")
            self.assertGreater(len(epochs), 4)
            self.assertEqual([epoch["finished_epoch"] for epoch in epochs], list(range(len(epochs))))
            self.assertTrue(all(epoch["complete"] and not epoch["cut"] for epoch in epochs))

    def test_errors(self):
        result = self.train("wrong", train__steps=2, expect=USAGE, **{**BINS, "data__packing": "full"})
        self.assert_error(result, USAGE, "data.length-bins", "data.packing doc")
        text, other = self.folder / "other.txt", self.folder / "other"
        tupelo_runs.write_text(text, seed=8)
        self.prepare(text, other)
        result = self.train("wrong", train__steps=2, expect=USAGE, corpus=[self.corpus, other], **BINS)
        self.assert_error(result, USAGE, "length bins", "mixture")
        self.train("kept", train__steps=2, **BINS)
        result = self.train("kept", train__steps=4, expect=USAGE, **{**BINS, "data__length_bins": 3})
        self.assert_error(result, USAGE, "data.length-bins")


if __name__ == "__main__":
    tupelo_runs.main()
