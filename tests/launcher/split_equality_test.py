"""The split of the global batch over ranks and micro-batches decides nothing."""

import tupelo_runs


class SplitEquality(tupelo_runs.RunTest):

    def setUp(self):
        self.steps = {"train__steps": 50}
        self.train("one", **self.steps)
        self.expected = tupelo_runs.losses(self.folder / "one")
        self.masks = [r["masks_hash"] for r in tupelo_runs.records(self.folder / "one")]
        self.assertEqual(len(self.expected), 50)

    def check(self, run_name):
        self.assert_close(self.expected, tupelo_runs.losses(self.folder / run_name), 1e-5)
        self.assertEqual(
            self.masks, [r["masks_hash"] for r in tupelo_runs.records(self.folder / run_name)])

    def test_ranks_and_accumulation(self):
        for ranks in (2, 3, 4):
            self.train(f"ranks{ranks}", ranks=ranks, **self.steps)
            self.check(f"ranks{ranks}")
        self.train("whole", train__micro_batch=16, **self.steps)
        self.check("whole")
        self.train("accumulated", train__micro_batch=3, **self.steps)
        self.check("accumulated")

    def test_processors_compute_the_same_with_deterministic_kernels_alone(self):
        self.train("as-it-is", ranks=2, data__packing="packed", **self.steps)
        result = self.train("deterministic", ranks=2, data__packing="packed", train__deterministic="true", **self.steps)
        self.assertIn("deterministic kernels alone", result.stdout)
        self.assertEqual(tupelo_runs.losses(self.folder / "as-it-is"),
                         tupelo_runs.losses(self.folder / "deterministic"))

    def test_overlap_changes_no_bit(self):
        self.train("overlap", ranks=2, **self.steps)
        self.train("no-overlap", ranks=2, train__overlap="false", **self.steps)
        self.assertEqual(tupelo_runs.losses(self.folder / "overlap"),
                         tupelo_runs.losses(self.folder / "no-overlap"))


if __name__ == "__main__":
    tupelo_runs.main()
