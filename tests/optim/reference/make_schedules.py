#!/usr/bin/env python3
"""Writes schedules.json: the rates of the warm-up, stable, decay schedules of transformers.

    pip install torch==2.15.0 transformers==5.24.0
    python3 make_schedules.py > schedules.json
"""
import importlib.metadata
import json
import sys

import torch
from transformers import get_wsd_schedule

PACKAGES = {"torch": "2.15.0", "transformers": "5.24.0"}
PEAK, END, WARMUP, STABLE, DECAY, AFTER = 0.004, 0.0005, 7, 20, 13, 5
SHAPES = ("1-sqrt", "linear", "cosine")


def check_packages():
    for name, version in PACKAGES.items():
        found = importlib.metadata.version(name)
        if found.split("+")[0] != version:
            sys.exit(f"{name} is {found}, and schedules.json is made with {version}")


def rates(shape):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    schedule = get_wsd_schedule(optimizer, num_warmup_steps=WARMUP, num_stable_steps=STABLE, num_decay_steps=DECAY,
                                decay_type=shape, min_lr_ratio=END / PEAK)
    found = []
    for _ in range(WARMUP + STABLE + DECAY + AFTER):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return found


def main():
    check_packages()
    json.dump({"packages": PACKAGES, "peak": PEAK, "end": END, "warmup": WARMUP, "decay": DECAY,
               "total": WARMUP + STABLE + DECAY, "rates": {shape: rates(shape) for shape in SHAPES}},
              sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
