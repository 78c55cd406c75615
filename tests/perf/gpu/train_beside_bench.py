#!/usr/bin/env python3
"""`ferry train` on a LLaMA directory of 3.0 G random weights, beside step_bench's steps of the same shape.

    tests/perf/gpu/train_beside_bench.py BUILD_DIR PROFILE [--dir DIR] [--steps 24] [--turns 2] [--small]

BUILD_DIR has step_bench, ferry and ferry-trainer, PROFILE is what `ferry bench all --output` wrote here. The directory is made in
DIR (6 GB, kept): sharded bf16 weights, a tokenizer of whole words, and a text whose samples are all as long as the model reads
them. Both sides train the same shape, batch, length, type, clipping and budget of 11 GiB; step_bench takes rows that lie ready,
`ferry train` reads, samples, logs and checks. They run in turns. Prints the median step of each, without the first steps, which
record graphs, and step_bench's time over that of `ferry train`; exits 1 where that is below 0.97. --small is a tiny model
on the CPU, which shows that all parts work and holds nobody to a bar.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BAR = 0.97
N_WORDS = 20000
FIRST_STEPS = 6  # record graphs and touch memory
LLAMA_3G = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000, "hidden_size": 3072,
            "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 8192,
            "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
            "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}


def write_model(directory, config):
    """Weights as transformers names them, normal with 0.02, norms one; a shard for each layer and one for the rest."""
    import torch
    from safetensors.torch import save_file
    directory.mkdir(parents=True, exist_ok=True)
    width, inner, head = config["hidden_size"], config["intermediate_size"], config["hidden_size"] // config["num_attention_heads"]
    kv = config["num_key_value_heads"] * head
    generator = torch.Generator().manual_seed(18)
    names, total = {}, 0

    def save(shard, shapes):
        nonlocal total
        tensors = {name: torch.ones(shape, dtype=torch.bfloat16) if len(shape) == 1 else
                   torch.empty(shape, dtype=torch.bfloat16).normal_(0, 0.02, generator=generator) for name, shape in shapes.items()}
        save_file(tensors, directory / shard, metadata={"format": "pt"})
        names.update(dict.fromkeys(tensors, shard))
        total += sum(2 * tensor.numel() for tensor in tensors.values())

    vocab = config["vocab_size"]
    n_shards = config["num_hidden_layers"] + 1
    def shard_name(i):
        return f"model-{i + 1:05d}-of-{n_shards:05d}.safetensors"

    save(shard_name(0), {"model.embed_tokens.weight": (vocab, width), "lm_head.weight": (vocab, width), "model.norm.weight": (width,)})
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        save(shard_name(layer + 1), {
            at + "self_attn.q_proj.weight": (width, width), at + "self_attn.k_proj.weight": (kv, width),
            at + "self_attn.v_proj.weight": (kv, width), at + "self_attn.o_proj.weight": (width, width),
            at + "mlp.gate_proj.weight": (inner, width), at + "mlp.up_proj.weight": (inner, width),
            at + "mlp.down_proj.weight": (width, inner), at + "input_layernorm.weight": (width,),
            at + "post_attention_layernorm.weight": (width,)})
    (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": names}))
    (directory / "config.json").write_text(json.dumps(config))


def write_tokenizer(directory, n_words):
    """One token a word, so that the length of the text in tokens is known."""
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"w{i}": i + 3 for i in range(n_words)}}
    added = [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for word, i in list(vocabulary.items())[:3]]
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                 "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
                 "model": {"type": "WordPiece", "vocab": vocabulary, "unk_token": "<unk>", "continuing_subword_prefix": "##",
                           "max_input_chars_per_word": 100}}
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    (directory / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}))


def write_texts(file, n_words, n_samples, length):
    """Rows of exactly `length` words."""
    draw = random.Random(18)
    with open(file, "w") as out:
        for _ in range(n_samples):
            out.write(json.dumps({"text": " ".join(f"w{draw.randrange(n_words)}" for _ in range(length))}) + "\n")


def run(command, env=None):
    print("$", *command, flush=True)
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, **(env or {})))
    if done.returncode != 0:
        sys.exit(f"exit {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def trained_ms(build, args, data, more):
    """The median step of `ferry train`, ms."""
    with tempfile.TemporaryDirectory(dir=args.dir) as runs:
        out = Path(runs) / "run"
        run([build / "src/cli/ferry", "train", "--model", args.dir / "model", "--dataset", data, "--task", "causal-lm",
             "--output-dir", out, "--max-steps", args.steps, "--logging-steps", 1, "--save-strategy", "no",
             *more], {"XDG_DATA_HOME": args.dir / "share"})
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "step_ms" in line]
    print("  loss", *(f"{line['loss']:.3f}" for line in steps[::8] if "loss" in line), flush=True)
    return statistics.median(line["step_ms"] for line in steps[FIRST_STEPS:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("profile", type=Path)
    parser.add_argument("--dir", type=Path, default=Path("/tmp/train_beside_bench"))
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    config, batch, length = LLAMA_3G, 8, 1024
    bench = ["--shape", "llama-3g", "--cap", "11GiB", "--dtype", "bf16"]
    train = ["--gpu-memory", "11GiB", "--dtype", "bf16"]
    if args.small:
        config = dict(LLAMA_3G, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                      intermediate_size=128)
        length, bench, train = 64, None, ["--device", "cpu", "--dtype", "fp32"]
    if not (args.dir / "model/config.json").exists():
        write_model(args.dir / "model", config)
        write_tokenizer(args.dir / "model", N_WORDS)
    data = args.dir / "texts.jsonl"
    write_texts(data, N_WORDS, batch * (args.steps + 1), length)
    if bench:  # where `ferry train` looks for what the machine can do
        (args.dir / "share/ferry").mkdir(parents=True, exist_ok=True)
        shutil.copy(args.profile, args.dir / "share/ferry/machine.json")
    train += ["--train-batch-size", batch, "--max-length", length, "--max-grad-norm", "1.0"]
    benched, trained = [], []
    for _ in range(args.turns):
        if bench:
            text = run([args.build / "tests/perf/step_bench", *bench, "--batch", batch, "--length", length, "--order", "auto",
                        "--clip", "1.0", "--warmup", FIRST_STEPS, "--steps", args.steps - FIRST_STEPS, "--profile", args.profile])
            benched.append(json.loads([line for line in text.splitlines() if line.startswith("{")][-1])["step_ms"])
            print(f"  step_bench {benched[-1]:.1f} ms", flush=True)
        trained.append(trained_ms(args.build, args, data, train))
        print(f"  ferry train {trained[-1]:.1f} ms", flush=True)
    if not benched:
        return 0
    share = statistics.median(benched) / statistics.median(trained)
    print(f"ferry train reaches {share:.3f} of step_bench's rate; the bar is {BAR}")
    return 0 if share >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
