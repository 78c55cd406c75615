// On what a model is trained, and what is told of it: options of precision, memory, threads and
// reports.

#include "src/config/options/option_groups.h"

namespace ferry::config {
namespace {

constexpr std::string_view kPrecisionGroup = "Precision and repeatability",
                           kMemoryGroup = "Memory and placement", kThreadGroup = "Threads",
                           kReportGroup = "Evaluation and logging";
// More threads than a large server has cores only wait for each other, each with its own stack.
constexpr double kMaxThreads = 1024;
constexpr std::string_view kOtherReport =
    "this version writes TensorBoard's files and metrics.jsonl, which other trackers import";

}  // namespace

std::vector<Option> machine_options() {
  return {
      // ---- Precision and repeatability
      {.key = "dtype",
       .label = "Number type",
       .type = Type::choice,
       .group = kPrecisionGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .choices = {"auto", "fp32", "bf16", "fp16"},
       .choice_aliases = {{"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}},
       .aliases = {{"bf16", "bf16"},
                   {"fp16", "fp16"},
                   {"bfloat16", "bf16"},
                   {"float16", "fp16"},
                   {"compute_type"},
                   {"torch_dtype"}},
       .verbs = kRunning | kExport,
       .help =
           "Type the model computes in; master weights keep fp32's bits. auto: bf16 on GPUs from "
           "sm_80, fp16 "
           "with loss scaling on sm_75, fp32 on a CPU. 16-bit halves memory and transfers. In "
           "ferry export the type of the weights that it writes; auto: of a checkpoint the type "
           "its run computed in, of other models as they are."},
      {.key = "final_dtype",
       .label = "Type of the trained model",
       .type = Type::choice,
       .group = kPrecisionGroup,
       .effect = Effect::free,
       .value = "auto",
       .choices = {"auto", "fp32", "bf16", "fp16"},
       .choice_aliases = {{"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}},
       .aliases = {{"save_dtype"}},
       .verbs = kTraining,
       .help =
           "Type of the weights in final/. auto: the type the run computes in, so that the file of "
           "a 16-bit run is half as large, as the models of others are; fp32 keeps the bits of the "
           "master weights. Checkpoints hold those in any case."},
      {.key = "seed",
       .label = "Seed",
       .type = Type::integer,
       .group = kPrecisionGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "42",
       .unit = "whole number",
       .range = {0, kMaxInteger},
       .verbs = kTraining | kGenerate | kTalking,
       .help = "Seed of new weights, dropout and drawn tokens; the same seed and "
               "micro-batch give the same bits."},
      {.key = "data_seed",
       .label = "Seed of the data order",
       .type = Type::integer,
       .group = kPrecisionGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .unit = "whole number",
       .can_be_auto = true,
       .range = {0, kMaxInteger},
       .help = "Seed of the order of samples and of the held-out share; auto is seed."},
      {.key = "deterministic",
       .label = "Same bits every time",
       .type = Type::boolean,
       .group = kPrecisionGroup,
       .effect = Effect::fixes_bits,
       .value = "true",
       .aliases = {{"full_determinism"}},
       .verbs = kRunning,
       .help = "The same bits wherever the bytes live and whenever it runs. false may be some "
               "percent faster "
               "on a GPU."},

      // ---- Memory and placement
      {.key = "device",
       .label = "Device",
       .type = Type::choice,
       .group = kMemoryGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .choices = {"auto", "cuda", "cpu", "simulated"},
       .aliases = {{"use_cpu", "cpu"}, {"no_cuda", "cpu"}},
       .verbs = kRunning,
       .help = "Where the model computes; auto takes the GPU if there is a usable one. simulated "
               "is a GPU "
               "played by the CPU, for tests."},
      {.key = "gpu_memory",
       .label = "GPU memory",
       .type = Type::bytes,
       .group = kMemoryGroup,
       .level = Level::basic,
       .value = "auto",
       .unit = "bytes, or 11GiB",
       .can_be_auto = true,
       .range = {1048576, kMaxInteger},
       .aliases = {{"gpu_memory_limit"}},
       .verbs = kRunning,
       .help = "GPU memory that may be taken, counted as the driver counts: other programs on the "
               "card are in it; more than the card has counts as what it has. What does not fit "
               "streams from host memory; auto takes what is free but a margin."},
      {.key = "host_memory",
       .label = "Host memory",
       .type = Type::bytes,
       .group = kMemoryGroup,
       .level = Level::basic,
       .value = "auto",
       .unit = "bytes, or 48GiB",
       .can_be_auto = true,
       .range = {1048576, kMaxInteger},
       .verbs = kRunning,
       .help = "Host memory Ferry may take; auto reads free memory and the cgroup's limit, "
               "and keeps a margin."},
      {.key = "gpus",
       .label = "GPUs",
       .type = Type::list,
       .group = kMemoryGroup,
       .value = "",
       .verbs = kTraining,
       .help = "GPUs that share each step: how many (2), or which ones (0,2). Each holds a part of "
               "the states and takes micro-batches in turn. Never changes the result. With "
               "device = cpu, processes on the CPU."},
      {.key = "gpu_shares",
       .label = "Shares of the GPUs",
       .type = Type::list,
       .group = kMemoryGroup,
       .value = "",
       .verbs = kTraining,
       .help =
           "For GPUs of different speed: a whole number for each of gpus, with commas between "
           "them, 2,1 where the first one is twice as fast as the second. Each gets this share "
           "of a step's micro-batches, or of the blocks. auto measures the GPUs when a run starts, "
           "and the run keeps what it has measured. Empty: GPUs of one model get as many, and GPUs "
           "of several models are measured; ferry plan estimates them from the machine's figures. "
           "On "
           "GPUs of one model it never changes the result."},
      {.key = "gpu_split",
       .label = "Split over GPUs",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "samples", "blocks"},
       .verbs = kTraining,
       .help = "How several GPUs share a step. samples: each takes some of its micro-batches "
               "through the whole model, and holds a part of each block. blocks: each has some of "
               "the blocks, all micro-batches pass from GPU to GPU, and no weights or gradients "
               "do; it wants as many micro-batches as GPUs. auto takes blocks where that is 10 % "
               "faster, or alone fits. Never changes the result."},
      {.key = "pipe_size",
       .label = "Stages of a pipeline",
       .type = Type::integer,
       .group = kMemoryGroup,
       .value = "auto",
       .unit = "GPUs",
       .can_be_auto = true,
       .range = {1, 1024},
       .aliases = {{"pipeline_model_parallel_size"}, {"pipeline_parallel_size"}},
       .verbs = kTraining,
       .help = "How many GPUs have the blocks of one model together, each some of them; a divisor "
               "of gpus. With gpus = 4 and pipe_size = 2, two pairs of GPUs take micro-batches "
               "through the whole model, and two GPUs with the same blocks hold a part of these "
               "each. pipe_size = gpus is the same as gpu_split = blocks, and 1 as samples; auto "
               "takes one of these two. Never changes the result."},
      {.key = "pipe_chunks",
       .label = "Runs of blocks in a stage",
       .type = Type::integer,
       .group = kMemoryGroup,
       .value = "1",
       .unit = "runs",
       .range = {1, 64},
       .aliases = {{"virtual_pipeline_model_parallel_size"}},
       .verbs = kTraining,
       .help = "For experiments: each stage of a pipeline has so many runs of blocks that follow "
               "each other. With more of them the GPUs wait less at the ends of a step, and pass "
               "more values (interleaved 1F1B). Never changes the result."},
      {.key = "sp_size",
       .label = "GPUs that share texts",
       .type = Type::integer,
       .group = kMemoryGroup,
       .value = "1",
       .unit = "GPUs",
       .range = {1, 64},
       .aliases = {{"sequence_parallel_size"}, {"context_parallel_size"}},
       .verbs = kTraining,
       .help =
           "For long texts: so many GPUs share the tokens of each micro-batch, so that each "
           "holds this part of its activations (sequence parallelism); sp_attention says how they "
           "attend to the others' tokens. A divisor of gpus. For language models and tags of "
           "tokens. The result is that of one GPU but for the rounding of sums, and on GPUs "
           "for the dropout of attention."},
      {.key = "sp_attention",
       .label = "Attention to shared texts",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "heads", "ring"},
       .verbs = kTraining,
       .help = "How GPUs that share texts attend to each other's tokens. heads: they exchange "
               "tokens for heads of attention, whose number is a multiple of sp_size (Ulysses). "
               "ring: keys and values go round, of any number of heads (ring attention); of one "
               "long causal text the last GPU then works longest. auto takes heads where they can "
               "be shared."},
      {.key = "tp_size",
       .label = "GPUs that share layers",
       .type = Type::integer,
       .group = kMemoryGroup,
       .value = "1",
       .unit = "GPUs",
       .range = {1, 64},
       .aliases = {{"tensor_parallel_size"}, {"tensor_model_parallel_size"}},
       .verbs = kTraining,
       .help = "So many GPUs work on each micro-batch together: each has some of a layer's heads "
               "and columns, and they add up what they found twice a layer (tensor parallelism). "
               "A divisor of gpus and of the number of heads. It wants GPUs that reach each other "
               "fast; gpu_split moves less. The result is that of one GPU but for the rounding of "
               "sums, and on GPUs for the dropout of attention."},
      {.key = "zero_level",
       .label = "Sharding level (ZeRO)",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "1", "2", "3"},
       .verbs = kTraining,
       .help = "For experiments: what each of several GPUs holds of layers that live on the GPUs: "
               "their whole weights, and a part of states and gradients (2), or a part of the "
               "weights, too (3), which come together for each pass. 1 is taken as 2: no GPU keeps "
               "gradients that are another one's. auto takes the faster one that fits. Never "
               "changes the result."},
      {.key = "reduction",
       .label = "Reduction of gradients",
       .type = Type::choice,
       .group = kMemoryGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .choices = {"auto", "ordered", "fast"},
       .verbs = kTraining,
       .help = "The order in which several GPUs add the gradients of a step: in that of its "
               "micro-batches, which gives the bits of one GPU (ordered), or each GPU its own "
               "first, which sends less (fast). auto takes fast where ordered would take 3 % "
               "longer."},
      {.key = "pinned_memory",
       .label = "Pinned memory",
       .type = Type::bytes,
       .group = kMemoryGroup,
       .value = "auto",
       .unit = "bytes, or 512MiB",
       .can_be_auto = true,
       .range = {1048576, kMaxInteger},
       .verbs = kRunning,
       .help =
           "Host memory that may be pinned for copies to and from the GPU; auto pins as much as "
           "the system allows. What more is copied goes through a ring of pinned slots, which "
           "takes longer. Never changes the result."},
      {.key = "nvme_path",
       .label = "NVMe directories",
       .type = Type::list,
       .group = kMemoryGroup,
       .value = "",
       .verbs = kRunning | kExport,
       .help =
           "A third place beside GPU and host memory: directories on NVMe drives, separated by "
           "commas, one for each drive. What host memory has no room for lives there, optimizer "
           "states first, then weights, then gradients; several drives share it in stripes. A "
           "step reads and writes it once, so slow drives make slow steps. Empty: no drive is "
           "used. Never changes the result."},
      {.key = "nvme_memory",
       .label = "NVMe space",
       .type = Type::bytes,
       .group = kMemoryGroup,
       .value = "auto",
       .unit = "bytes, or 400GiB",
       .can_be_auto = true,
       .range = {1048576, kMaxInteger},
       .verbs = kRunning,
       .help = "Space that a run may take on the drives of nvme_path, all of them together; auto "
               "takes what is free there, and keeps a margin."},
      {.key = "nvme_endurance",
       .label = "Endurance of the drives",
       .type = Type::bytes,
       .group = kMemoryGroup,
       .value = "auto",
       .unit = "bytes, or 600TB",
       .can_be_auto = true,
       .range = {1048576, kMaxInteger},
       .help = "Bytes that may be written to the drives of nvme_path, all of them together, in "
               "their life, as their data sheets say (TBW). The plan then says how long they last "
               "at the run's rate; auto: not known."},
      {.key = "placement",
       .label = "Placement",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "resident", "host", "nvme"},
       .verbs = kRunning,
       .help = "For experiments: weights and states all on the device (resident), all in host "
               "memory (host), or all states on the drives of nvme_path (nvme). auto takes the "
               "fastest that fits. Never changes the result."},
      {.key = "activations",
       .label = "Activations",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "keep", "selective", "recompute", "host"},
       .aliases = {{"gradient_checkpointing", "recompute"},
                   {"enable_activation_checkpointing", "recompute"},
                   {"activation_checkpointing", "recompute"}},
       .help =
           "For experiments: what happens to tensors saved for the backward. keep is fastest, "
           "selective makes each layer's largest again (of BERT two fifths of them, for a tenth "
           "more computing), recompute all of them (a third more), host costs transfers. auto "
           "keeps as much as fits. Never changes the result."},
      {.key = "layer_inputs",
       .label = "Layer inputs",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "device", "host"},
       .aliases = {{"boundaries"}},
       .help =
           "For experiments: the inputs of layers, which the backward pass reads again, stay on "
           "the device or are sent to host memory and fetched back (host). auto takes the host "
           "only "
           "where nothing fits otherwise. Never changes the result."},
      {.key = "accumulation_order",
       .label = "Accumulation order",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "horizontal", "vertical"},
       .help = "For experiments: the whole model per micro-batch (horizontal, less saved), or all "
               "micro-batches block by block (vertical, weights transferred once). Where GPUs "
               "have some of the blocks, horizontal is a pipeline (1F1B): each has blocks that "
               "follow each other, and as many micro-batches as stages are under way. Never "
               "changes the result."},
      {.key = "measure_plans",
       .label = "Measure plans",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "off"},
       .help = "Where plans are promised nearly the same time, the start of a new run times some "
               "steps of each and takes the fastest, in about a twentieth of the run's time. The "
               "choice is kept for later runs. It may choose another micro-batch, and so other "
               "bits, than a run elsewhere; off takes what is promised to be the fastest."},
      {.key = "optimizer_overlap",
       .label = "Update while computing",
       .type = Type::boolean,
       .group = kMemoryGroup,
       .value = "true",
       .help = "For experiments: the CPU updates parameters while the device computes. false shows "
               "what that "
               "saves. Never changes the result."},
      {.key = "slots",
       .label = "Weight slots",
       .type = Type::integer,
       .group = kMemoryGroup,
       .value = "auto",
       .unit = "blocks",
       .can_be_auto = true,
       .range = {2, 1024},
       .verbs = kRunning,
       .help = "For experiments: regions of device memory that hold one block's weights each. More "
               "hide "
               "transfers better and leave less memory for activations."},

      // ---- Threads
      {.key = "worker_threads",
       .label = "Worker threads",
       .type = Type::integer,
       .group = kThreadGroup,
       .value = "auto",
       .unit = "threads",
       .can_be_auto = true,
       .range = {1, kMaxThreads},
       .help = "Threads that update parameters and convert weights. Never changes the result."},
      {.key = "intra_op_threads",
       .label = "Threads inside an operation",
       .type = Type::integer,
       .group = kThreadGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .unit = "threads",
       .can_be_auto = true,
       .range = {1, kMaxThreads},
       .verbs = kRunning,
       .help = "LibTorch's threads inside one operation on a CPU. Belongs to what fixes the bits "
               "of a run."},

      // ---- Evaluation and logging
      {.key = "eval_strategy",
       .label = "When to evaluate",
       .type = Type::choice,
       .group = kReportGroup,
       .level = Level::basic,
       .value = "epoch",
       .choices = {"epoch", "steps", "no"},
       .aliases = {{"evaluation_strategy"}},
       .help = "Evaluate at the end of each epoch or every eval_steps, where there is data for it, "
               "and once at the end. Training waits meanwhile; no leaves more time to it."},
      {.key = "eval_steps",
       .label = "Evaluate every",
       .type = Type::interval,
       .group = kReportGroup,
       .level = Level::basic,
       .value = "500",
       .unit = "steps, share below 1, or time",
       .range = {0, kMaxInteger},
       .help = "Steps or time (30min) between two evaluations with eval_strategy = steps. More "
               "often shows sooner "
               "where overfitting begins, and takes more time."},
      {.key = "load_best_model_at_end",
       .label = "Keep the best model",
       .type = Type::boolean,
       .group = kReportGroup,
       .effect = Effect::changes_training,
       .value = "false",
       .help = "final/ is the model of the best evaluation, not of the last step. A checkpoint is "
               "written at each new best one, and kept."},
      {.key = "metric_for_best_model",
       .label = "Metric of the best model",
       .type = Type::text,
       .group = kReportGroup,
       .effect = Effect::changes_training,
       .value = "loss",
       .help =
           "What an evaluation is judged by: loss, accuracy, f1, f1_macro, pearson, ..., as the "
           "evaluations print it."},
      {.key = "greater_is_better",
       .label = "Larger is better",
       .type = Type::choice,
       .group = kReportGroup,
       .effect = Effect::changes_training,
       .value = "auto",
       .choices = {"auto", "true", "false"},
       .help = "Whether a larger metric_for_best_model is better; auto: not for losses and "
               "errors."},
      {.key = "early_stopping_patience",
       .label = "Early stopping patience",
       .type = Type::integer,
       .group = kReportGroup,
       .effect = Effect::changes_training,
       .value = "0",
       .unit = "evaluations",
       .special = {"0", "off"},
       .range = {0, kMaxInteger},
       .aliases = {{"early_stopping_steps"}},
       .help = "Stop after so many evaluations in a row without a better metric_for_best_model; 0 "
               "never does. Few save time, but a plateau may end the run."},
      {.key = "early_stopping_threshold",
       .label = "Early stopping threshold",
       .type = Type::number,
       .group = kReportGroup,
       .effect = Effect::changes_training,
       .value = "0",
       .unit = "of the metric",
       .special = {"0", "any improvement"},
       .range = {0, 1e6},
       .help = "By how much a metric must improve to count for early_stopping_patience; more stops "
               "sooner on a plateau."},
      {.key = "logging_steps",
       .label = "Log every",
       .type = Type::integer,
       .group = kReportGroup,
       .value = "500",
       .unit = "steps",
       .range = {1, kMaxInteger},
       .help =
           "Write a line with loss, learning rate and gradient norm every so many steps, and "
           "at the end. The loss is the mean since the last line (each tenth of the run has one, "
           "too). A smaller number shows trouble sooner and makes a longer log."},
      {.key = "report_to",
       .label = "Curves for",
       .type = Type::choice,
       .group = kReportGroup,
       .value = "tensorboard",
       .choices = {"tensorboard", "none"},
       .choice_aliases = {{"all", "tensorboard"},
                          {"no", "none"},
                          {"wandb", "tensorboard", kOtherReport},
                          {"mlflow", "tensorboard", kOtherReport},
                          {"comet_ml", "tensorboard", kOtherReport},
                          {"clearml", "tensorboard", kOtherReport},
                          {"neptune", "tensorboard", kOtherReport},
                          {"swanlab", "tensorboard", kOtherReport},
                          {"trackio", "tensorboard", kOtherReport}},
       .help = "Curves for TensorBoard in the run's tensorboard/; none leaves metrics.jsonl alone, "
               "which is always written."},
      {.key = "machine",
       .label = "Machine to plan for",
       .type = Type::text,
       .group = kReportGroup,
       .value = "auto",
       .can_be_auto = true,
       .verbs = kPlan,
       .help = "Plans for a machine that is not here, by its profile's name: 2080ti-11g, 4090-24g "
               "and others (presets/machines/); auto is this one, as ferry doctor measured it. "
               "4090-24g,3060-12g is the first machine with a GPU of each: gpus counts all of them "
               "unless it is given."},
      {.key = "simulate",
       .label = "File of the simulated trace",
       .type = Type::path,
       .group = kReportGroup,
       .value = "auto",
       .can_be_auto = true,
       .verbs = kPlan,
       .help =
           "A file for a Chrome trace of two steps as they are expected to run: when each block "
           "is computed, copied and updated. auto writes none."},
      {.key = "trace",
       .label = "File of the trace",
       .type = Type::path,
       .group = kReportGroup,
       .value = "auto",
       .can_be_auto = true,
       .help =
           "A file for a Chrome trace (chrome://tracing, Perfetto) of the first ten steps: when "
           "each block was computed, copied and updated. auto writes none. Costs some "
           "microseconds an action in those steps."},
  };
}

}  // namespace ferry::config
