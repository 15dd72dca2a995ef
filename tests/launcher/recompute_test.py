"""Recomputing activations changes no bit of the trained parameters."""

import hashlib

import tupelo_runs


class Recompute(tupelo_runs.RunTest):

    def parameters(self, run_name, **options):
        self.train(run_name, train__steps=20, model__dropout="0.1", model__attention_dropout="0.1",
                   **options)
        files = list((self.folder / run_name / "checkpoints").glob("step-*/model.safetensors"))
        self.assertEqual(len(files), 1)
        return hashlib.sha256(files[0].read_bytes()).hexdigest()

    def test_bitwise_equal_parameters(self):
        kept = self.parameters("kept")
        self.assertEqual(kept, self.parameters("kept-again"))
        for layers in ("all", "0+2", "1"):
            self.assertEqual(kept, self.parameters("recompute-" + layers, model__recompute=layers))
        self.assertNotEqual(kept, self.parameters("other-seed", train__seed=2))


if __name__ == "__main__":
    tupelo_runs.main()
