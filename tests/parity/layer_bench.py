"""Forward and backward of a BERT classifier in fp32 on the CPU, Ferry's blocks against transformers, no optimizer.

    layer_bench.py LAYER_BENCH_PROGRAM [--threads 2] [--sequences 16] [--length 128] [--model minilm|base] [--rounds 3]

Both run in turns in the same minute; prints the median step of each and their ratio (above 1: Ferry is faster)."""
import argparse, os, statistics, subprocess, sys, time

MODELS = {"minilm": dict(width=384, heads=12, intermediate=1536, layers=6),
          "base": dict(width=768, heads=12, intermediate=3072, layers=12)}
parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--sequences", type=int, default=16)
parser.add_argument("--length", type=int, default=128)
parser.add_argument("--model", default="minilm", choices=MODELS)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--steps", type=int, default=5)
a = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(a.threads)
import torch, transformers

torch.set_num_threads(a.threads)
m = MODELS[a.model]
config = transformers.BertConfig(hidden_size=m["width"], num_attention_heads=m["heads"], intermediate_size=m["intermediate"],
                                 num_hidden_layers=m["layers"], max_position_embeddings=max(512, a.length))
model = transformers.BertForSequenceClassification(config).train()
ids = torch.randint(1, config.vocab_size, (a.sequences, a.length))
mask, labels = torch.ones_like(ids), torch.zeros(a.sequences, dtype=torch.long)


def theirs():
    model.zero_grad()
    begin = time.perf_counter()
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    middle = time.perf_counter()
    loss.backward()
    return 1e3 * (middle - begin), 1e3 * (time.perf_counter() - middle)


def ours():
    numbers = [a.sequences, a.length, m["width"], m["heads"], m["intermediate"], m["layers"], config.vocab_size, a.steps]
    out = subprocess.run([a.program, *map(str, numbers)], check=True, capture_output=True, text=True).stdout
    return [tuple(map(float, line.split())) for line in out.splitlines()]


for _ in range(2):
    theirs()
ferry, hf = [], []
for _ in range(a.rounds):
    ferry += ours()
    hf += [theirs() for _ in range(a.steps)]
median = lambda rows, pick: statistics.median(map(pick, rows))
for what, pick in (("forward", lambda r: r[0]), ("backward", lambda r: r[1]), ("both", sum)):
    print(f"{what}: ferry {median(ferry, pick):.1f} ms, transformers {median(hf, pick):.1f} ms, "
          f"ratio {median(hf, pick) / median(ferry, pick):.2f}; best {min(map(pick, ferry)):.1f} and {min(map(pick, hf)):.1f} ms")
