#!/usr/bin/env python3
"""Writes optimizers.json: what public implementations of Lion, StableAdamW and Muon make of some tensors.

    pip install torch==2.15.0 pytorch-optimizer==4.1.0
    python3 make_optimizers.py > optimizers.json

Everything is computed in float64 on one thread; the same versions write the same file.
"""
import importlib.metadata
import inspect
import json
import random
import sys

import pytorch_optimizer
import torch
from torch.optim import _muon

PACKAGES = {"torch": "2.15.0", "pytorch-optimizer": "4.1.0"}
STEPS = 12
SHOWN = (1, 2, 3, 8, 12)  # updates after which parameters are written
SHAPES = ([6, 4], [4, 6], [5, 5], [7])
MATRICES = 3
SPIKE, SPIKED = 7, 40.0  # from 0: gradients of this update are so much larger
BETAS, EPSILON, MOMENTUM = (0.9, 0.98), 1e-6, 0.95
DECAY = 0.1
REST = 0.25  # learning rate of what Muon leaves to AdamW, relative to its own


def check_packages():
    for name, version in PACKAGES.items():
        found = importlib.metadata.version(name)
        if found.split("+")[0] != version:
            sys.exit(f"{name} is {found}, and optimizers.json is made with {version}")


def drawn(generator, shape, scale):
    """Normal values rounded to 64ths, which float32 and JSON hold exactly."""
    values = [round(64 * scale * generator.gauss(0, 1)) / 64 for _ in range(torch.Size(shape).numel())]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def inputs():
    generator = random.Random(2023)
    parameters = [drawn(generator, shape, 1.0) for shape in SHAPES]
    gradients = [[drawn(generator, shape, SPIKED if step == SPIKE else 0.5) for shape in SHAPES]
                 for step in range(STEPS)]
    gradients[0][1].zero_()  # no update has a direction yet
    rates = [0.02 * (1 - step / 20) for step in range(STEPS)]
    return parameters, gradients, rates


def numbers(tensor):
    return tensor.detach().flatten().tolist()


def followed(start, gradients, rates, make):
    """Parameters after the updates in SHOWN. `make` gives optimizers with their relative rates."""
    parameters = [tensor.clone().requires_grad_() for tensor in start]
    optimizers = make(parameters)
    after = {}
    for step in range(STEPS):
        for parameter, gradient in zip(parameters, gradients[step]):
            parameter.grad = gradient.clone()
        for optimizer, relative in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rates[step] * relative
            optimizer.step()
        if step + 1 in SHOWN:
            after[step + 1] = [numbers(parameter) for parameter in parameters]
    return after


def lion(parameters):
    return [(pytorch_optimizer.Lion(parameters, betas=BETAS, weight_decay=DECAY), 1.0)]


def stable_adamw(parameters):
    return [(pytorch_optimizer.StableAdamW(parameters, betas=BETAS, eps=EPSILON, weight_decay=DECAY), 1.0)]


def muon(adjustment):
    def make(parameters):
        matrices = torch.optim.Muon(parameters[:MATRICES], weight_decay=DECAY, momentum=MOMENTUM,
                                    adjust_lr_fn=adjustment)
        rest = torch.optim.AdamW(parameters[MATRICES:], betas=BETAS, eps=EPSILON, weight_decay=DECAY)
        return [(matrices, 1.0), (rest, REST)]
    return make


def orthogonalize_in_full_precision():
    """torch.optim.Muon iterates in bfloat16 whatever the parameters are; here it keeps their dtype."""
    source = inspect.getsource(_muon._zeropower_via_newtonschulz)
    if source.count("torch.bfloat16") != 1:
        sys.exit("torch.optim.Muon has changed: look at its Newton-Schulz iteration")
    exec(source.replace("torch.bfloat16", "grad.dtype"), _muon.__dict__)


def main():
    check_packages()
    torch.set_num_threads(1)
    orthogonalize_in_full_precision()
    parameters, gradients, rates = inputs()
    cases = {"lion paper": lion, "stable-adamw paper": stable_adamw,
             "muon keller": muon("original"), "muon moonshot": muon("match_rms_adamw")}
    content = {
        "packages": PACKAGES, "shapes": SHAPES, "matrices": MATRICES, "beta1": BETAS[0], "beta2": BETAS[1],
        "epsilon": EPSILON, "momentum": MOMENTUM, "weight_decay": DECAY, "rest": REST, "rates": rates,
        "parameters": [numbers(tensor) for tensor in parameters],
        "gradients": [[numbers(tensor) for tensor in step] for step in gradients],
        "after": {name: followed(parameters, gradients, rates, make) for name, make in cases.items()}}
    json.dump(content, sys.stdout, indent=None, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
