"""DeepSpeed's ZeRO with CPU Adam, and the settings that its experts give it."""
import os
import sys

import torch

from task import become_rank
from update import LR

PINNED = {"device": "cpu", "pin_memory": True}
LAYERS = {False: "transformers.models.bert.modeling_bert.BertLayer",
          True: "transformers.models.llama.modeling_llama.LlamaDecoderLayer"}
ZENFLOW = {"topk_ratio": 0.1, "select_strategy": "auto", "select_interval": "auto", "update_interval": 4,
           "full_warm_up_rounds": 0, "overlap_step": True, "pt_reserved_cores_perc": 0.5}
BERT3 = {"memory_efficient_linear": False, "reduce_bucket_size": 32_000_000,
         "stage3_prefetch_bucket_size": 30_000_000, "stage3_param_persistence_threshold": 100_000,
         "sub_group_size": 50_000_000, "stage3_max_live_parameters": 1_000_000_000,
         "stage3_max_reuse_distance": 1_000_000_000}
LLAMA3 = {"memory_efficient_linear": False, "reduce_bucket_size": 100_000_000,
          "stage3_prefetch_bucket_size": 100_000_000, "stage3_param_persistence_threshold": 30_720,
          "sub_group_size": 200_000_000, "stage3_max_live_parameters": 2_000_000_000,
          "stage3_max_reuse_distance": 2_000_000_000}
# Requests of 1 MiB, as many under way as Ferry has.
AIO = {"block_size": 1 << 20, "queue_depth": 16, "intra_op_parallelism": 4, "single_submit": False, "overlap_events": True}
# Beside what zero_of sets for each stage. leaf: the model's layers are fetched whole.
PRESETS = {
    "plain": {},
    "bert": {2: {"reduce_bucket_size": 50_000_000, "allgather_bucket_size": 50_000_000},
             3: {**BERT3, "leaf": True}},
    # As transformers' "auto" works out for a width of 1024.
    "bert-auto": {3: {"reduce_bucket_size": 1_048_576, "stage3_prefetch_bucket_size": 943_718,
                      "stage3_param_persistence_threshold": 10_240}},
    # Half of the states on the GPU, where stage 3 updates them.
    "bert-twin": {3: {**BERT3, "leaf": True, "offload_optimizer": {**PINNED, "ratio": 0.5}}},
    "llama": {2: {"reduce_bucket_size": 100_000_000, "allgather_bucket_size": 100_000_000},
              3: {**LLAMA3, "leaf": True}},
    "llama-auto": {3: {"reduce_bucket_size": 9_437_184, "stage3_prefetch_bucket_size": 8_493_465,
                       "stage3_param_persistence_threshold": 30_720}},
    "llama-twin": {3: {**LLAMA3, "leaf": True, "offload_optimizer": {**PINNED, "ratio": 0.92},
                       "sub_group_size": 100_000_000, "stage3_max_live_parameters": 500_000_000}},
    # States on a drive, in the directory of --nvme-path; weights and gradients in host memory. A group has four buffers, and
    # one is read while one is updated and one written.
    "llama-nvme": {3: {**LLAMA3, "leaf": True, "sub_group_size": 100_000_000,
                       "offload_optimizer": {"device": "nvme", "pin_memory": True, "buffer_count": 12,
                                             "pipeline_read": True, "pipeline_write": True}}},
    # Approximate: all but the largest gradients come up to four steps late.
    "zenflow-bert": {2: {"reduce_bucket_size": 100_000_000, "zenflow": ZENFLOW}},
    "zenflow-llama": {2: {"reduce_bucket_size": 100_000_000, "zenflow": {**ZENFLOW, "topk_ratio": 0.03}}},
}


def zero_of(stage, preset, causal):
    """The zero_optimization of a configuration; KeyError where the preset is of another stage."""
    zero = {"stage": stage, "offload_optimizer": PINNED, "overlap_comm": True, "contiguous_gradients": True}
    if stage == 3:
        zero["offload_param"] = PINNED
    more = dict(PRESETS[preset] and PRESETS[preset][stage])
    if more.pop("leaf", False):
        zero["leaf_module"] = {"classes": [LAYERS[causal]]}
    return {**zero, **more}


def config_of(args, stage, causal, version):
    """All of DeepSpeed's configuration; version: (0, 19)."""
    micro = args.micro or args.batch
    config = {"train_micro_batch_size_per_gpu": micro, args.dtype: {"enabled": True},
              "gradient_accumulation_steps": args.batch // micro, "gradient_clipping": 1.0,
              "zero_optimization": zero_of(stage, args.preset, causal)}
    if args.dtype == "bf16" and version >= (0, 19):
        config["bf16"]["check_grad_overflow"] = False
    states = config["zero_optimization"]["offload_optimizer"]
    if states["device"] == "nvme":
        config["zero_optimization"]["offload_optimizer"] = {**states, "nvme_path": args.nvme_path}
        config["aio"] = AIO
    if "zenflow" in config["zero_optimization"]:  # which makes its optimizer itself
        config["optimizer"] = {"type": "AdamW", "params": {"lr": LR}}
        config["zero_allow_untested_optimizer"] = True
    return config


def imported(directory):
    """The package, from `directory` where one is given: versions lie beside each other, each with what it builds."""
    if directory:
        sys.path.insert(0, str(directory))
        os.environ["TORCH_EXTENSIONS_DIR"] = os.path.join(directory, "torch_extensions")
    import deepspeed
    return deepspeed


def engine_of(stage):
    def engine(task, start):
        args = task.args
        deepspeed = imported(args.deepspeed)
        version = tuple(int(part) for part in deepspeed.__version__.split(".")[:2])
        become_rank()
        model = task.build("cpu", task.dtype)
        if args.device == "cuda":
            torch.cuda.empty_cache()
        task.compile(model)
        config = config_of(args, stage, task.causal, version)
        words = {}
        if "optimizer" not in config:
            from deepspeed.ops.adam import DeepSpeedCPUAdam
            words["optimizer"] = DeepSpeedCPUAdam(model.parameters(), lr=LR)
        runner, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config, **words)
        # Not before: version 0.19 lays weights out on the GPU as long as the driver, which knows no cap, has room.
        start()

        def step(micro_batches):
            for batch in micro_batches:
                loss = runner(**batch).loss
                runner.backward(loss)
                runner.step()
            return loss
        step.version = deepspeed.__version__
        return model, step
    return engine
