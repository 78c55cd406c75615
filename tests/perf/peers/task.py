"""What a peer is to train: the model, the rows of each step, and how its layers are compiled."""
import os

import torch

import packed

SHAPES = {  # width, layers, heads, ffn
    "bert-large": (1024, 24, 16, 4096), "tiny": (64, 2, 2, 128),
    "llama-3g": (3072, 28, 24, 8192), "llama-1g": (3072, 8, 24, 8192), "tiny-llama": (64, 2, 4, 128)}
GIB = 2**30


class Task:
    """The model's constructor and the batches: `steps` of micro-batches of keyword arguments."""

    def __init__(self, args):
        self.args = args
        self.causal = "llama" in args.model
        micro = args.micro or args.batch
        generator = torch.Generator().manual_seed(3 + rank())
        self.steps = []
        for lengths in self.lengths():
            # The same rows, so the same step: only which of them share a micro-batch changes.
            lengths = sorted(lengths) if args.sort else lengths
            batches = [self.batch(lengths[first:first + micro], generator)
                       for first in range(0, len(lengths), micro)]
            self.steps.append([{key: value.to(args.device) if torch.is_tensor(value) else value
                                for key, value in batch.items()} for batch in batches])
        self.n_tokens = [sum(lengths) for lengths in self.lengths()]

    def batch(self, lengths, generator):
        """One micro-batch on the CPU: padded, or with --packed laid end to end."""
        args = self.args
        if args.packed:
            return packed.batch(lengths, args.round_to, generator)
        longest = args.length if args.pad else max(lengths)
        if args.round_to:
            longest = min(args.length, -(-longest // args.round_to) * args.round_to)
        ids = torch.randint(5, 30000, (len(lengths), longest), generator=generator)
        batch = {"input_ids": ids}
        if min(lengths) < longest:
            places = torch.arange(longest)[None]
            batch["attention_mask"] = (places < torch.tensor(lengths)[:, None]).long()
        batch["labels"] = ids if self.causal else torch.randint(
            0, 2, (len(lengths),), generator=generator)
        return batch

    def lengths(self):
        """Of each step's rows."""
        if not self.args.lengths:
            return [[self.args.length] * self.args.batch]
        with open(self.args.lengths) as lines:
            return [[int(word) for word in line.split()] for line in lines]

    @property
    def n_micro(self):
        return len(self.steps[0])

    def build(self, device=None, dtype=torch.float32):
        """The model on `device`, --device by itself, weights drawn there: a GPU draws 3 G of them at once."""
        width, layers, heads, ffn = SHAPES[self.args.model]
        common = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
                  "intermediate_size": ffn, "attn_implementation": packed.NAME if self.args.packed else "sdpa"}
        if self.args.packed:
            packed.register()
        with torch.device(self.args.device):
            if self.causal:
                from transformers import LlamaConfig, LlamaForCausalLM
                model = LlamaForCausalLM(LlamaConfig(
                    vocab_size=32000, num_key_value_heads=max(1, heads // 3), use_cache=False, **common))
            else:
                from transformers import BertConfig, BertForSequenceClassification
                model = BertForSequenceClassification(BertConfig(num_labels=2, **common))
        if self.args.packed:
            packed.pool_first_tokens(model)
        if self.args.liger:
            from liger_kernel.transformers import apply_liger_kernel_to_llama
            apply_liger_kernel_to_llama(model=model)
        if self.args.checkpoint or self.args.checkpoint_layers:
            model.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False})
            if not self.args.checkpoint:
                for layer in self.layers_of(model)[self.args.checkpoint_layers:]:
                    layer.gradient_checkpointing = False
        return model.to(device or self.args.device, dtype).train()

    def layers_of(self, model):
        return model.model.layers if self.causal else model.bert.encoder.layer

    @property
    def dtype(self):
        return {"bf16": torch.bfloat16, "fp16": torch.float16}[self.args.dtype]

    def compile(self, model):
        """The model, with its layers or all of it compiled where that is asked for. A budget counts for what
        is compiled after it is set."""
        args = self.args
        if args.budget is not None:
            torch._functorch.config.activation_memory_budget = args.budget
        # Row lengths differ: one graph for all of them, not one each.
        how = {"mode": args.compile_mode, "dynamic": True if args.lengths and not args.graph else None}
        if args.compile == "whole":
            return torch.compile(model, **how)
        if args.compile:
            layers = self.layers_of(model)
            for i in range(len(layers)):
                layers[i] = torch.compile(layers[i], **how)
        return model


def rank():
    """This process among those that torchrun started; 0 where none did."""
    return int(os.environ.get("RANK", 0))


def world():
    return int(os.environ.get("WORLD_SIZE", 1))


def become_rank():
    """Tells torch.distributed of a group of one, unless torchrun has told it of another."""
    for key, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29000 + os.getpid() % 999),
                       "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        os.environ.setdefault(key, value)
