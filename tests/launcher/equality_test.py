"""The same run whatever shares its work and memory: ranks, sharded optimizer state, recomputing, in each precision."""

import itertools

import tupelo_runs

STEPS = 5
# Without clipping: a norm over slices is summed in another order than one over whole parameters.
OPTIONS = {"optim__schedule": "constant", "optim__warmup": 0, "train__validate_every": 0, "optim__clip_norm": 0,
           "train__steps": STEPS, "train__collectives": "messages", "model__dropout": 0}
PRECISIONS = ("fp32", "bf16")
RANKS = (1, 2, 3, 4)
SHARDS = ("none", "world")  # node is the same on one host; launcher.cluster has it on several
RECOMPUTED = ("none", "full", "auto")


class Equality(tupelo_runs.RunTest):

    def run_of(self, *choice):
        """The losses under a choice of (precision, ranks, shards, recompute); each is trained once."""
        name = "-".join(str(part) for part in choice)
        if not (self.folder / name).exists():
            precision, ranks, shards, recompute = choice
            if recompute == "auto":
                recompute += ":" + tupelo_runs.TIGHT_BUDGETS[precision]
            result = self.train(name, ranks=ranks, **OPTIONS, train__precision=precision,
                                train__shard_optimizer=shards, model__recompute=recompute)
            if recompute.startswith("auto"):
                self.assertRegex(result.stdout, r"recompute .*(attention|ffn|full).* \(auto")
        losses = tupelo_runs.losses(self.folder / name)
        self.assertEqual(sorted(losses), list(range(1, STEPS + 1)))
        return losses

    def test_every_combination(self):
        for precision, ranks in itertools.product(PRECISIONS, RANKS):
            plain = self.run_of(precision, ranks, "none", "none")
            # Other ranks add up other halves first.
            alone = self.run_of(precision, 1, "none", "none")
            self.assert_close(alone, plain, 1e-5 if precision == "fp32" else 1e-2)
            for shards, recompute in itertools.product(SHARDS, RECOMPUTED):
                with self.subTest(precision=precision, ranks=ranks, shards=shards, recompute=recompute):
                    self.assertEqual(plain, self.run_of(precision, ranks, shards, recompute))


if __name__ == "__main__":
    tupelo_runs.main()
