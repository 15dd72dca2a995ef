"""Documents that share a row train as if each had one of its own."""

import json

import tupelo_runs

# Encodings of every path through attention and the input, the untying of [CLS] and a convolution among them.
MODELS = ({"model.position": "0:tupe-a,1:tupe-r,2:tupe-full(pos_dim=8)"},
          {"model.position": "0:rope,1:deberta,2:conv", "model.input-position": "none",
           "model.logn": "plain", "model.mask-decoder": "emd"})


class Packing(tupelo_runs.RunTest):

    def evaluate(self, run, **more):
        result = tupelo_runs.run(tupelo_runs.command("eval", dict(run=self.folder / run, **more), ["json"]))
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_held_out_loss_is_that_of_documents_alone(self):
        for model in MODELS:
            options = {"train__steps": 3, "train__validate_every": 0, **model}
            losses, rows = [], []
            for packing in ("doc", "packed"):
                # Without updates both runs hold the same weights.
                self.train(f"still-{packing}", data__packing=packing, flags=["fresh", "force"],
                           **{**options, "optim.learning-rate": 0})
                figures = self.evaluate(f"still-{packing}")
                losses.append({name: figures[name] for name in ("loss", "masked_tokens", "tokens")})
                rows.append(figures["rows"])
            self.assertLess(rows[1], 0.9 * rows[0])
            self.assertEqual(losses[0]["masked_tokens"], losses[1]["masked_tokens"])
            self.assertEqual(losses[0]["tokens"], losses[1]["tokens"])
            self.assertAlmostEqual(losses[0]["loss"], losses[1]["loss"], delta=2e-6 * losses[0]["loss"])

    def test_ranks_micro_batches_and_a_restart_change_nothing(self):
        options = {"data__packing": "packed", "train__steps": 12, "train__save_every": 6,
                   "train__validate_every": 6, "train__probe_every": 12, **MODELS[0]}
        self.train("one", **options)
        expected = tupelo_runs.losses(self.folder / "one")
        masks = [record["masks_hash"] for record in tupelo_runs.records(self.folder / "one")]
        for name, more in (("three", {"ranks": 3}), ("small", {"train__micro_batch": 1})):
            self.train(name, **{**options, **more})
            self.assert_close(expected, tupelo_runs.losses(self.folder / name), 1e-5)
            self.assertEqual(masks, [record["masks_hash"]
                                     for record in tupelo_runs.records(self.folder / name)])
        self.train("again", **{**options, "train__steps": 6, "optim__schedule": "constant",
                               "optim__warmup": 0})
        self.train("again", **{**options, "optim__schedule": "constant", "optim__warmup": 0})
        self.train("straight", **{**options, "optim__schedule": "constant", "optim__warmup": 0})
        self.assertEqual(tupelo_runs.losses(self.folder / "straight"),
                         tupelo_runs.losses(self.folder / "again"))
        self.assertIn("entropy", json.dumps(tupelo_runs.records(self.folder / "one", "probe")[0]))

    def test_recompute_changes_no_bit(self):
        options = {"data__packing": "packed", "train__steps": 4, **MODELS[1]}
        self.train("kept", **options)
        self.train("recomputed", model__recompute="all", **options)
        self.assertEqual(tupelo_runs.losses(self.folder / "kept"),
                         tupelo_runs.losses(self.folder / "recomputed"))


if __name__ == "__main__":
    tupelo_runs.main()
