"""What compare.py runs: works, their peers and the bars that Ferry's rate over theirs is held to."""
import random

# Micro-batches of 16 keep 16 layers: about 9.9 of the 11 GiB; 18 if they fit. A graph is what the
# eager one would be with launches that cost nothing, which the bar does not speak of.
BEST_PLAIN = [("plain --micro 8", 1.12), ("plain --micro 8 --compile", 1.12),
              ("plain --micro 8 --graph", None),
              ("plain --micro 16 --checkpoint-layers 8", 1.12),
              ("plain --micro 16 --checkpoint-layers 8 --compile", 1.12),
              ("plain --micro 16 --checkpoint-layers 6", 1.12),
              ("plain --micro 16 --checkpoint-layers 6 --compile", 1.12),
              ("plain --checkpoint", 1.12), ("plain --checkpoint --compile", 1.12)]


def gpt2_13g(batch, published, **more):
    return {"what": f"GPT-2 of 12.8 G, 512, {batch} a step, bf16, 8-bit states, split master, 11 GiB",
            "model": f"--batch {batch} --length 512 --dtype bf16", "shape": "gpt2-13g", "cap": "11GiB",
            "ferry": f"--optim adamw_8bit --master split --micro {batch} --host-memory 118GiB",
            "steps": 20, "limit": 400, "learns": True,
            "published": f"{published} samples/s on 32 V100 in the README of the original (BMTrain)", **more}


# peers: engine and options, and Ferry's rate over the peer's that is to be reached, if any.
# variants: Ferry with other options, and the bars of that by peer.
# own: Ferry with other options, the share that is to be reached of its rate or of the formula's,
# whichever is lower, and the case of against_formula.py. formula: such a case, and the share of its
# formula that its steps are to reach.
# absolute: tokens a second, and where. published: said beside the table, not compared.
# learns: the last step's loss is below the first's. loss: the shape of ragged_loss.py.
WORKS = {
    "bert-bf16": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "11GiB",
        "peers": BEST_PLAIN + [("transformers --checkpoint --dtype fp16", 1.5),
                               ("torchao --checkpoint", 1.25), ("torchao --checkpoint-layers 12", 1.25)]},
    "bert-fp16": {
        "what": "BERT-Large, 512, 32 a step, fp16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype fp16", "shape": "bert-large", "cap": "11GiB",
        "peers": BEST_PLAIN + [("transformers --checkpoint", 1.5),
                               ("torchao --checkpoint --dtype bf16", 1.25)]},
    "bert-host": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, weights and states on the host",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "11GiB",
        "ferry": "--placement host",
        "peers": [("deepspeed2 --checkpoint", 1.8), ("deepspeed2 --checkpoint-layers 12", 1.8),
                  ("deepspeed3 --checkpoint", 2.8),
                  ("fsdp2 --checkpoint", 2.8), ("fsdp2 --checkpoint-layers 12", 2.8)]},
    "bert-ragged": {
        "what": "BERT-Large, ragged rows, 32 a step, fp16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype fp16", "shape": "bert-large", "cap": "11GiB",
        "ragged": True, "loss": "bert-large",
        "peers": [("transformers --checkpoint", 4.0), ("transformers --checkpoint --pad", None),
                  ("plain --micro 8 --expandable --dtype bf16", None),
                  ("plain --checkpoint --dtype bf16", None),
                  ("plain --checkpoint --pad --dtype bf16", None)]},
    "bert-4gib": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, 4 GiB",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "4GiB",
        "peers": [("torchao --checkpoint", None), ("torchao --checkpoint-layers 12", None),
                  ("deepspeed3 --checkpoint", None)],
        "own": ("--cap 11GiB", 0.85, "bert-4gib")},
    "bert-no-cap": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, all of the GPU",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large",
        "peers": [("transformers", 1.2), ("plain --compile", 0.97)]},
    "llama": {
        "what": "Llama shape of 3.0 G, 1024, 8 a step, bf16, clip 1.0, 11 GiB",
        "model": "--batch 8 --length 1024 --dtype bf16", "shape": "llama-3g", "cap": "11GiB",
        # The first comes within 20 MiB of the cap: the second is there in case that slows it down.
        "peers": [("deepspeed3 --checkpoint", 1.7), ("deepspeed3 --checkpoint --expandable", 1.7),
                  ("fsdp2 --checkpoint", None)],
        "learns": True,
        # The peers' states are fp32 all the same.
        "variants": [(words, {"deepspeed3 --checkpoint": 2.3, "deepspeed3 --checkpoint --expandable": 2.3})
                     for words in ("--optim adamw_8bit", "--optim adamw_8bit --master split")]},
    "llama-best-batch": {
        "what": "Llama shape of 3.0 G, 1024, 64 a step, bf16, fp32 states, clip 1.0, 11 GiB",
        "model": "--batch 64 --length 1024 --dtype bf16", "shape": "llama-3g", "cap": "11GiB", "learns": True,
        "absolute": (16500, "one H200 with 16 cores")},
    # One micro-batch each.
    "gpt2-13g-8": gpt2_13g(8, 24.15, formula=("gpt2-13g-8", 0.8)),
    "gpt2-13g-16": gpt2_13g(16, 26.94),
    "gpt2-13g-24": gpt2_13g(24, 29.42),
    "gpt2-13g-32": gpt2_13g(32, 28.28, formula=("gpt2-13g-32", 0.8)),
}
DEFAULT = [name for name, work in WORKS.items() if "peers" in work]

N_RAGGED = 16


def steps_of(args, work):
    """(warm-up, timed steps). fp16's loss scale comes down in the first ones."""
    if work.get("ragged"):
        return 2 * N_RAGGED, N_RAGGED
    return (12 if "fp16" in work["model"] else 4), max(args.steps, work.get("steps", 0))


def ragged_lengths(batch, n_steps=N_RAGGED, seed=3):
    """Of n_steps steps; most of them between 90 and 300."""
    rng = random.Random(seed)
    return [[min(512, max(64, int(rng.lognormvariate(5.1, 0.4)))) for _ in range(batch)]
            for _ in range(n_steps)]


def batch_of(work):
    words = work["model"].split()
    return int(words[words.index("--batch") + 1])


def bytes_of(words):
    """Of 11GiB; None of 0, which is no limit."""
    return int(float(words.removesuffix("GiB")) * 2**30) or None
