"""What compare.py runs: works, their peers and the bars that Ferry's rate over theirs is held to."""
import random

# Peers of a work: those that were the best of their kind somewhere come first, and are run by themselves;
# what --menu all adds was slower, is not known yet, or does not fit everywhere.
PLAIN = ["plain --micro 16 --compile --checkpoint-layers 4", "plain --micro 16 --compile --budget 0.8"]
PLAIN_MORE = ["plain --micro 16 --compile --checkpoint-layers 6",
              "plain --micro 16 --compile --checkpoint-layers 2",
              "plain --micro 16 --compile whole --budget 0.8",
              "plain --micro 16 --compile --budget 0.6",
              "plain --compile --budget 0.4 --expandable",
              "plain --micro 16 --checkpoint-layers 6",
              "plain --micro 8 --compile", "plain --micro 8 --graph",
              "plain --micro 8 --compile whole --compile-mode reduce-overhead",
              "plain --checkpoint --compile"]
TRANSFORMERS = ["transformers --micro 16 --compile --checkpoint-layers 12"]
TRANSFORMERS_MORE = ["transformers --micro 16 --compile --budget 0.5", "transformers --micro 8 --compile",
                     "transformers --micro 16 --checkpoint-layers 12", "transformers --checkpoint --compile",
                     "transformers --checkpoint"]
TORCHAO_MORE = ["torchao --checkpoint-layers 12 --compile --minimal-size 1100000", "torchao --checkpoint",
                "torchao --exact --micro 16 --compile --checkpoint-layers 12"]

# What of a peer's work is not Ferry's, by words that it has: the table says it beside the peer's name. All
# others are exact: fp32 masters and states, the same rows a step, gradients clipped at 1.0 all together.
APPROXIMATE = [("torchao", "16-bit weights and states, not clipped"),
               ("--optim flashadamw", "8-bit states, masters of 24 bits"),
               ("--optim adamw8bit", "8-bit states, no masters"),
               ("--preset zenflow", "most gradients up to 4 steps late")]
EXACT = "--exact"  # the option that takes it back


def approximation_of(peer):
    """What is approximate about a peer; an empty text where nothing is."""
    if EXACT in peer.split():
        return ""
    return next((what for words, what in APPROXIMATE if f" {words}" in f" {peer}"), "")


def without_bars(*peers):
    return [(peer, None) for peer in peers]


def gpt2_13g(batch, published, **more):
    return {"what": f"GPT-2 of 12.8 G, 512, {batch} a step, bf16, 8-bit states, split master, 11 GiB",
            "model": f"--batch {batch} --length 512 --dtype bf16", "shape": "gpt2-13g", "cap": "11GiB",
            "ferry": f"--optim adamw_8bit --master split --micro {batch} --host-memory 118GiB",
            "steps": 20, "limit": 400, "learns": True,
            "published": f"{published} samples/s on 32 V100 in the README of the original (BMTrain)", **more}


# peers: engine and options, and Ferry's rate over the peer's that is to be reached, if any. more: those of
# --menu all. best: Ferry's rate over that of the fastest exact one that ran, which is to be reached.
# variants: Ferry with other options, and the bars of that by peer.
# own: Ferry with other options, the share that is to be reached of its rate or of the formula's,
# whichever is lower, and the case of against_formula.py. formula: such a case, and the share of its
# formula that its steps are to reach.
# absolute: tokens a second, and where. published: said beside the table, not compared.
# learns: the last step's loss is below the first's. loss: the shape of ragged_loss.py.
WORKS = {
    "bert-bf16": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "11GiB", "best": 1.2,
        "peers": without_bars(*PLAIN, *TRANSFORMERS),
        "more": without_bars(*PLAIN_MORE, *TRANSFORMERS_MORE, *TORCHAO_MORE,
                             "plain --optim flashadamw --compile --budget 0.8")},
    "bert-fp16": {
        "what": "BERT-Large, 512, 32 a step, fp16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype fp16", "shape": "bert-large", "cap": "11GiB", "best": 1.2,
        "peers": without_bars(*PLAIN, *TRANSFORMERS),
        "more": without_bars(*PLAIN_MORE, *TRANSFORMERS_MORE, "torchao --checkpoint --dtype bf16")},
    "bert-host": {
        # That it has to lie there is a condition of this work: 11 GiB have room for it.
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, weights and states on the host",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "11GiB", "best": 1.5,
        "ferry": "--placement host",
        "peers": without_bars("byhand --micro 16 --compile --budget 0.8",
                              "byhand --stream --compile",
                              "deepspeed2 --preset bert --compile --checkpoint-layers 8"),
        "more": without_bars("byhand --micro 16 --compile", "byhand --checkpoint-layers 12 --compile",
                             "deepspeed2 --checkpoint-layers 12", "deepspeed3 --preset bert --checkpoint-layers 8",
                             "deepspeed3 --preset bert-auto --checkpoint-layers 8",
                             "deepspeed3 --preset bert-twin --checkpoint-layers 12",
                             "fsdp2 --tuned --compile --checkpoint-layers 12", "fsdp2 --checkpoint-layers 12",
                             *TORCHAO_MORE,
                             "deepspeed2 --preset zenflow-bert --checkpoint-layers 8")},
    "bert-ragged": {
        "what": "BERT-Large, ragged rows, 32 a step, fp16, clip 1.0, 11 GiB",
        "model": "--batch 32 --length 512 --dtype fp16", "shape": "bert-large", "cap": "11GiB", "best": 1.5,
        "ragged": True, "loss": "bert-large",
        # Compiled code is captured by torch.compile's own mode: capturing it from outside fails.
        "peers": without_bars("plain --packed --micro 16 --round-to 512 --graph",
                              "plain --packed --round-to 512 --graph --expandable",
                              "plain --packed --compile"),
        "more": without_bars("plain --packed", "plain --packed --round-to 512 --graph",
                             "plain --packed --micro 16 --round-to 512 --compile whole --compile-mode reduce-overhead",
                             "plain --packed --dtype bf16", "transformers --packed --compile",
                             "transformers --packed --checkpoint-layers 8",
                             "plain --sort --micro 8 --round-to 64 --compile",
                             "plain --sort --micro 8 --round-to 64 --expandable",
                             "transformers --checkpoint", "transformers --checkpoint --pad",
                             "plain --checkpoint", "plain --checkpoint --pad")},
    "bert-4gib": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, 4 GiB",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "cap": "4GiB",
        "peers": without_bars("byhand --micro 16 --checkpoint --compile", "torchao --checkpoint",
                              "plain --optim flashadamw --checkpoint --micro 16 --compile"),
        "more": without_bars("plain --optim adamw8bit --checkpoint --micro 16 --compile",
                             "byhand --stream --compile --micro 16", "torchao --checkpoint-layers 12",
                             "deepspeed2 --preset bert --checkpoint", "deepspeed3 --preset bert --checkpoint"),
        "own": ("--cap 11GiB", 0.85, "bert-4gib")},
    "bert-no-cap": {
        "what": "BERT-Large, 512, 32 a step, bf16, clip 1.0, all of the GPU",
        "model": "--batch 32 --length 512 --dtype bf16", "shape": "bert-large", "best": 1.1,
        "peers": without_bars("plain --compile", "plain --compile whole --compile-mode reduce-overhead",
                              "transformers --compile"),
        "more": without_bars("plain --compile whole", "plain --graph",
                             "plain --compile whole --compile-mode max-autotune-no-cudagraphs",
                             "transformers --compile whole", "transformers",
                             "plain --optim flashadamw --compile")},
    "llama": {
        "what": "Llama shape of 3.0 G, 1024, 8 a step, bf16, clip 1.0, 11 GiB",
        "model": "--batch 8 --length 1024 --dtype bf16", "shape": "llama-3g", "cap": "11GiB", "best": 1.5,
        "peers": without_bars("byhand --checkpoint --liger --compile", "byhand --stream --liger --compile",
                              "deepspeed2 --preset llama --checkpoint --liger"),
        "more": without_bars("byhand --checkpoint --liger", "byhand --stream --liger",
                             "deepspeed3 --preset llama --checkpoint --liger",
                             "deepspeed3 --preset llama-auto --checkpoint --liger",
                             "deepspeed3 --preset llama-twin --checkpoint --liger",
                             "deepspeed3 --checkpoint --expandable", "fsdp2 --tuned --checkpoint --liger",
                             "fsdp2 --checkpoint", "torchao --checkpoint --liger",
                             "deepspeed2 --preset zenflow-llama --checkpoint --liger"),
        "learns": True,
        # Beside the approximate peers, and the exact ones, whose states are fp32 all the same.
        "variants": [("--optim adamw_8bit", {}), ("--optim adamw_8bit --master split", {})]},
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
MENUS = ["best", "all"]
DEFAULT = [name for name, work in WORKS.items() if "peers" in work]

N_RAGGED = 16


def peers_of(work, menu):
    """(peer, bar) of a work."""
    return work.get("peers", []) + (work.get("more", []) if menu == "all" else [])


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
