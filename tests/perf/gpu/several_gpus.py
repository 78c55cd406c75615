#!/usr/bin/env python3
"""`ferry train` on several GPUs of this host beside one of them, each way to share a step, and beside peers.

    tests/perf/gpu/several_gpus.py BUILD_DIR [CASE[:WAY]]... [--gpus 2] [--steps N] [--batch N] [--dir DIR] [--peers] [--small]

BUILD_DIR has ferry and ferry-trainer. Each GPU has the batch that one GPU has (weak scaling). Ways:

    one             one GPU
    samples         each GPU takes samples (ZeRO)
    blocks          each GPU has some of the blocks
    pipeline        the same, in horizontal order (1F1B)
    samples-no-p2p  GPUs without peer access to each other (NCCL_P2P_DISABLE=1), and
    blocks-no-p2p   the same with blocks

Models have random weights of a seed, rows are random words of full length. For each run a line comes at once: tokens a second of
all GPUs in the median step (without the first steps, which record graphs and touch memory), the step that `ferry plan` said before
the run and its share of the measured one. Plans go by what `ferry bench all` and `ferry bench nccl` measure first, with and
without peer access; --dir keeps it. --peers runs FSDP2 and DeepSpeed ZeRO-3 by torchrun, where they
are installed. A run that fails is a line with its last words, and the script exits 1. --small: tiny models on the CPU, which show
that all parts work.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import train_beside_bench as MAKE  # noqa: E402
from llama_8g import LLAMA_8G  # noqa: E402

N_WORDS = 20000
FIRST_STEPS = 4
RUN_S = 400  # of one run, at most
BERT_LARGE = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
              "intermediate_size": 4096, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu"}
GPT2_13G = {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 5120, "n_layer": 40, "n_head": 40, "n_positions": 1024,
            "tie_word_embeddings": True}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
SMALL_GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 4}
CLASSIFY = "classification"
EIGHT_BITS = ["--optim", "adamw_8bit", "--master", "split"]
WAYS = {"one": ([], {}), "samples": (["--gpu-split", "samples"], {}), "blocks": (["--gpu-split", "blocks"], {}),
        "pipeline": (["--gpu-split", "blocks", "--accumulation-order", "horizontal"], {}),
        "samples-no-p2p": (["--gpu-split", "samples"], {"NCCL_P2P_DISABLE": "1"}),
        "blocks-no-p2p": (["--gpu-split", "blocks"], {"NCCL_P2P_DISABLE": "1"})}
DEEPSPEED3 = "deepspeed3"
# name: config, task, samples a GPU, tokens a sample, steps, options, the peers' model and their options
CASES = {
    "bert": (BERT_LARGE, CLASSIFY, 32, 512, 24, ["--gpu-memory", "11GiB"], "bert-large",
             {"fsdp2": ["--cap", "11GiB", "--checkpoint"], "fsdp2 --tuned": ["--cap", "11GiB", "--checkpoint-layers", "12"],
              DEEPSPEED3: ["--cap", "11GiB", "--preset", "bert", "--checkpoint-layers", "8"]}),
    "bert-host": (BERT_LARGE, CLASSIFY, 32, 512, 24, ["--gpu-memory", "11GiB", "--placement", "host"], "", {}),
    "bert-resident": (BERT_LARGE, CLASSIFY, 32, 512, 24, ["--placement", "resident", "--zero-level", "3"], "bert-large",
                      {"fsdp2 --resident": []}),
    "llama-3g": (MAKE.LLAMA_3G, "causal-lm", 8, 1024, 10, ["--gpu-memory", "11GiB"], "llama-3g",
                 {"fsdp2": ["--cap", "11GiB", "--checkpoint"],
                  DEEPSPEED3: ["--cap", "11GiB", "--preset", "llama", "--checkpoint"]}),
    "llama-8g": (LLAMA_8G, "causal-lm", 8, 1024, 7, ["--gpu-memory", "24GiB"], "", {}),
    "gpt2-13g": (GPT2_13G, "causal-lm", 8, 512, 7, ["--gpu-memory", "11GiB", *EIGHT_BITS], "", {}),
}


def write_inputs(directory, config, task, n_rows, length):
    """The directory of config and tokenizer, and the file of rows."""
    directory.mkdir(parents=True, exist_ok=True)
    MAKE.write_tokenizer(directory, N_WORDS)
    (directory / "config.json").write_text(json.dumps(config))
    data = directory / "rows.jsonl"
    MAKE.write_texts(data, N_WORDS, n_rows, length)
    if task == CLASSIFY:
        rows = [json.loads(line) for line in data.read_text().splitlines()]
        data.write_text("".join(json.dumps({**row, "label": i % 2}) + "\n" for i, row in enumerate(rows)))
    return data


def last_words(text, n=3):
    return " / ".join([line.strip() for line in text.splitlines() if line.strip()][-n:])[-600:]


def measure(args):
    """Measures this machine with and without peer access, unless --dir has the figures."""
    ferry = args.build / "src/cli/ferry"
    for share, env in (("share", {}), ("share-no-p2p", WAYS["samples-no-p2p"][1])):
        file = args.dir / share / "ferry/machine.json"
        done = args.dir / share / "measured"
        if done.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        if share == "share":
            MAKE.run([ferry, "bench", "all", "--output", file])
        else:
            shutil.copy(args.dir / "share/ferry/machine.json", file)
        print(MAKE.run([ferry, "bench", "nccl", "--gpus", args.gpus], {"XDG_DATA_HOME": str(args.dir / share), **env}), flush=True)
        done.touch()


def planned(train, env):
    """What `ferry plan` says of the words of a `ferry train`, as it prints it with --json; empty where it says nothing."""
    kept, skipped = [train[0], "plan", "--json"], ("--dataset", "--output-dir", "--max-steps", "--logging-steps", "--save-strategy",
                                                   "--eval-fraction", "--measure-plans")
    for option, value in zip(train[2::2], train[3::2]):
        if option not in skipped:
            kept += [option, value]
    said = subprocess.run([str(word) for word in kept], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env).stdout
    return json.loads(said) if said.startswith("{") else {}


def figures_of(run):
    """Of a run's directory: seconds of the median step, first and last loss, and the GiB taken of those promised, by place."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    record = json.loads((run / "run.json").read_text())
    steps = [line for line in lines if "step_ms" in line]
    step_s = statistics.median(line["step_ms"] for line in steps[FIRST_STEPS:]) / 1e3
    losses = " ".join(f"{line['loss']:.5f}" for line in (steps[0], steps[-1]) if "loss" in line)
    keys = {"gpu": "gpu_bytes_peak", "host": "host_bytes_peak"}
    memory = {place: " of ".join(f"{record[part].get(key, 0) / 2**30:.2f}" for part in ("actual", "promised"))
              for place, key in keys.items()}
    return step_s, losses, memory


def train(args, name, way):
    """A line of the table, and the tokens a second; None where the run failed."""
    config, task, batch, length, n_steps, options, _, _ = CASES[name]
    n_steps, batch = args.steps or n_steps, args.batch or batch
    if args.small:
        config = {**config, **(SMALL if "hidden_size" in config else SMALL_GPT2)}
        if "num_key_value_heads" in config:
            config["num_key_value_heads"] = 2
        batch, length, n_steps = 4, 32, FIRST_STEPS + 2
        options = ["--device", "cpu"]
    more, env = WAYS[way]
    n_gpus = 1 if way == "one" else args.gpus
    directory = args.dir / name
    data = write_inputs(directory, config, task, batch * n_gpus * (n_steps + 1), length)
    with tempfile.TemporaryDirectory(dir=args.dir) as runs:
        out = Path(runs) / "run"
        words = [args.build / "src/cli/ferry", "train", "--config-name", directory, "--tokenizer-name", directory, "--dataset", data,
                 "--task", task, "--output-dir", out, "--train-batch-size", batch * n_gpus, "--max-length", length,
                 "--max-steps", n_steps, "--logging-steps", 1, "--save-strategy", "no", "--eval-fraction", "0",
                 "--measure-plans", "off", "--max-grad-norm", "1.0", "--dtype", "fp32" if args.small else "bf16", *options]
        if n_gpus > 1:
            words += ["--gpus", n_gpus, *more]
        env = {**os.environ, "XDG_DATA_HOME": str(args.dir / ("share-no-p2p" if env else "share")), **env}
        plan = planned(words, env)
        planned_s = (plan.get("time") or {}).get("step_s", float("nan"))
        started = time.monotonic()
        try:
            done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=RUN_S, env=env)
        except subprocess.TimeoutExpired as expired:
            return f"| {name} | {way} | took more than {RUN_S} s: {last_words((expired.stdout or b'').decode())} |", None
        if done.returncode != 0:
            return f"| {name} | {way} | exit {done.returncode}: {last_words(done.stdout)} |", None
        step_s, losses, memory = figures_of(out)
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
            stem = args.keep / f"{name}-{way}-{batch}"
            Path(f"{stem}.plan.json").write_text(json.dumps(plan))
            for file in ("run.json", "metrics.jsonl", "train.log"):
                if (out / file).exists():
                    shutil.copy(out / file, f"{stem}.{file}")
    rate = batch * n_gpus * length / step_s
    return (f"| {name} | {way} | {rate:.0f} | {step_s * 1e3:.1f} | {planned_s * 1e3:.1f} | {planned_s / step_s:.2f} | "
            f"{memory['gpu']} | {memory['host']} | {losses} | {time.monotonic() - started:.0f} s |"), rate


def peer(args, name, engine, options):
    """The line of a peer, and its tokens a second."""
    _, _, batch, length, _, _, model, _ = CASES[name]
    batch, started = args.batch or batch, time.monotonic()
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", args.gpus, HERE.parent / "peers/peer.py",
             "--engine", *engine.split(), "--model", model, "--batch", batch, "--length", length, "--steps", 8, *options]
    if args.small:
        words = [*words[:words.index("--model")], "--model", "tiny-llama" if "llama" in model else "tiny", "--batch", 4,
                 "--length", 32, "--steps", 2, "--warmup", 1, "--device", "cpu"]
    if args.deepspeed and engine == DEEPSPEED3:
        words += ["--deepspeed", args.deepspeed]
    # torchrun gives each process one thread by itself, and their AdamW runs on the CPU.
    env = {"OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // args.gpus)), **os.environ}
    # A session, so that torchrun's processes end with it.
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=env, start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return f"| {name} | {engine} | took more than {RUN_S} s: {last_words(said)} |", None
    found = [json.loads(line) for line in said.splitlines() if line.startswith('{"engine"')]
    if not found or "tokens_per_s" not in found[-1]:
        return f"| {name} | {engine} | {found[-1] if found else last_words(said)} |", None
    found = found[-1]
    return (f"| {name} | {engine} {' '.join(options)} | {found['tokens_per_s']:.0f} | {found['step_ms']:.1f} | | | "
            f"{found['gpu_bytes_max'] / 2**30:.2f} | {found['host_bytes_max'] / 2**30:.2f} | {found['first_loss']:.5f} {found['loss']:.5f} | "
            f"{found['version']}, {time.monotonic() - started:.0f} s |"), \
        found["tokens_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("case", nargs="*", metavar="CASE[:WAY]", help=f"of {', '.join(CASES)}; ways {', '.join(WAYS)}")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--steps", type=int, help="of each run, where the case's own is not wanted")
    parser.add_argument("--batch", type=int, help="samples a GPU, where the case's own are not wanted")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="of the plan, the records and the log of each run")
    parser.add_argument("--dir", type=Path, default=Path("/tmp/several_gpus"))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--deepspeed", metavar="DIR", help="where pip put DeepSpeed with --target")
    parser.add_argument("--small", action="store_true")
    args = parser.parse_intermixed_args()
    args.build = args.build.resolve()
    args.dir.mkdir(parents=True, exist_ok=True)
    wanted = {}
    for word in args.case or ["bert", "bert-host", "llama-3g"]:
        name, _, way = word.partition(":")
        if name not in CASES or (way and way not in WAYS):
            parser.error(f"there is no {word}: cases are {', '.join(CASES)}, ways {', '.join(WAYS)}")
        wanted.setdefault(name, []).extend([way] if way else WAYS)
    if not args.small:
        measure(args)
    print("| case | way | tokens/s | step, ms | planned, ms | share | GPU memory taken, of promised, GiB | host memory | "
          "loss, first and last | took |\n|---|---|---|---|---|---|---|---|---|---|")
    failed = False
    for name, ways in wanted.items():
        rates = {}
        for way in ways:
            line, rates[way] = train(args, name, way)
            print(line, flush=True)
            failed = failed or rates[way] is None
        for engine, options in (CASES[name][7] if args.peers else {}).items():
            line, rate = peer(args, name, engine, options)
            print(line, flush=True)
            failed = failed or rate is None
        if rates.get("one"):
            print(*(f"{name}: {way} is {rate / rates['one'] / args.gpus:.3f} of {args.gpus} times one"
                    for way, rate in rates.items() if rate and way != "one"), sep="\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
