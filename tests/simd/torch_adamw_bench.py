#!/usr/bin/env python3
"""Times torch's fused CPU AdamW on one fp32 parameter: the peer of simd_bench's case f32/none.

    torch_adamw_bench.py [--threads N] [--params N] [--rounds N] [--json]
"""
import argparse
import json
import os
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--params", type=int, default=64 << 20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


class FusedAdamw:
    """One parameter of n fp32 elements with gradient and states, as an optimizer of torch keeps them."""

    def __init__(self, n_params, n_threads):
        import torch

        torch.set_num_threads(n_threads)
        self.n_params = n_params
        self.parameter = torch.nn.Parameter(torch.ones(n_params))
        self.parameter.grad = torch.full((n_params,), 1e-2)
        self.optimizer = torch.optim.AdamW([self.parameter], lr=1e-4, weight_decay=0.01, fused=True)
        self.seconds()  # makes the states, starts the threads

    def seconds(self):
        """Of one step."""
        start = time.perf_counter()
        self.optimizer.step()
        return time.perf_counter() - start


def main():
    options = arguments()
    adamw = FusedAdamw(options.params, options.threads)
    seconds = sorted(adamw.seconds() for _ in range(options.rounds))
    result = {"threads": options.threads, "params": options.params, "rounds": options.rounds,
              "seconds_best": seconds[0], "seconds_median": seconds[len(seconds) // 2],
              "params_per_s": options.params / seconds[0]}
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"torch fused AdamW, fp32, {options.threads} threads: "
              f"{result['params_per_s'] * 1e-6:.1f} Mparam/s, {options.params * 28 / seconds[0] * 1e-9:.2f} GB/s")


if __name__ == "__main__":
    main()
