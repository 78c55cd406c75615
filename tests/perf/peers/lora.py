#!/usr/bin/env python3
"""Steps of LoRA by peft and transformers, as one JSON object on standard output.

    tests/perf/peers/lora.py CONFIG_JSON --batch 16 --length 1024 [--micro 2] [--cap 24GiB] [--steps 8] [--device cpu]

The model of that config.json has random 16-bit weights on the GPU, adapters of rank 16 on all linear maps of its layers in fp32,
checkpoints of each layer, torch's attention, and fused AdamW: the settings that such trainings are published with. --cap is what
torch's allocator may take. Where it does not fit, the object says so.
"""
import argparse
import json
import statistics
import sys
import time

import torch

GIB = 1 << 30


def build(args):
    import transformers
    from peft import LoraConfig, get_peft_model
    config = transformers.AutoConfig.for_model(**json.loads(open(args.config).read()))
    torch.set_default_dtype(torch.bfloat16 if args.device == "cuda" else torch.float32)
    with torch.device(args.device):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    torch.set_default_dtype(torch.float32)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
    model.config.use_cache = False
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    return get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=targets, task_type="CAUSAL_LM"))


def run(args):
    if args.cap and args.device == "cuda":
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(float(args.cap.removesuffix("GiB")) * GIB / whole)
    torch.manual_seed(1)
    model = build(args).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=2e-4, fused=args.device == "cuda")
    vocabulary = model.config.vocab_size
    n_micro = args.batch // args.micro
    times, losses = [], []
    for _ in range(args.steps + args.warmup):
        start = time.monotonic()
        total = 0.0
        for _ in range(n_micro):
            ids = torch.randint(0, vocabulary, (args.micro, args.length), device=args.device)
            with torch.autocast(args.device, torch.bfloat16, enabled=args.device == "cuda"):
                loss = model(input_ids=ids, labels=ids).loss / n_micro
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(total))  # waits for the GPU
        times.append(time.monotonic() - start)
    step_s = statistics.median(times[args.warmup:])
    return {"step_ms": 1e3 * step_s, "tokens_per_s": n_micro * args.micro * args.length / step_s, "first_loss": losses[0],
            "loss": losses[-1], "gpu_bytes_max": torch.cuda.max_memory_reserved() if args.device == "cuda" else 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--micro", type=int, default=1)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--cap", default="")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    args = parser.parse_args()
    row = {"engine": "peft", "batch": args.batch, "micro": args.micro, "length": args.length, "cap": args.cap}
    try:
        row.update(run(args))
    except torch.OutOfMemoryError as error:
        row["error"] = str(error)[:200]
    print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
