// The option table itself. Reading order is the order of --help and of config.toml. A new option is
// one entry here; tests/config then demands that it can be set in TOML, by flag and by environment.

#include "src/config/option.h"

namespace ferry::config {

namespace {

constexpr std::string_view kModelGroup = "Model", kDataGroup = "Data", kOutputGroup = "Output",
                           kScheduleGroup = "Batch and schedule", kOptimizerGroup = "Optimizer",
                           kRegularGroup = "Regularisation",
                           kPrecisionGroup = "Precision and repeatability",
                           kMemoryGroup = "Memory and placement", kThreadGroup = "Threads",
                           kReportGroup = "Evaluation and logging";
// More threads than a large server has cores only wait for each other, each with its own stack.
constexpr double kMaxThreads = 1024;
constexpr double kMaxInteger = 9007199254740991.0;  // 2^53 - 1: exact as a double, too

}  // namespace

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = {
      // ---- Model
      {.key = "model_name_or_path",
       .type = Type::path,
       .group = kModelGroup,
       .value = "",
       .aliases = {{"model", "", true}, {"model_name"}, {"pretrained_model_name_or_path"}},
       .verbs = kRunning | kExport,
       .help = "Hugging Face model directory, a run directory (its final/ is taken), or the name "
               "of a model "
               "that is on this machine, such as all-MiniLM-L6-v2."},
      {.key = "task",
       .type = Type::choice,
       .group = kModelGroup,
       .value = "classification",
       .choices = {"classification", "mlm"},
       .help = "What is trained: a sequence classifier, or the masked language model (mlm) to "
               "adapt a model "
               "to texts without labels."},
      {.key = "problem_type",
       .type = Type::choice,
       .group = kModelGroup,
       .value = "auto",
       .choices = {"auto", "single_label_classification", "multi_label_classification",
                   "regression"},
       .help = "How labels are read and which loss is used; auto decides by the data: one label a "
               "sample is "
               "single label."},

      // ---- Data
      {.key = "dataset",
       .type = Type::path,
       .group = kDataGroup,
       .value = "",
       .aliases = {{"train_file"}, {"dataset_name"}, {"train_dataset"}},
       .verbs = kRunning,
       .help =
           "Folder with one sub-folder of text files per label, or a .tsv, .csv or .jsonl file."},
      {.key = "eval_dataset",
       .type = Type::path,
       .group = kDataGroup,
       .value = "",
       .aliases = {{"validation_file"}, {"validation_dataset"}},
       .help =
           "Data for evaluation, of the same form as dataset; takes the place of eval_fraction."},
      {.key = "eval_fraction",
       .type = Type::number,
       .group = kDataGroup,
       .value = "0",
       .range = {0, 1, true},
       .aliases = {{"val_size"}, {"test_size"}},
       .help = "Share of dataset that is held out for evaluation, drawn by data_seed. More makes "
               "the measured "
               "accuracy surer and leaves less to learn from."},
      {.key = "dataset_format",
       .type = Type::choice,
       .group = kDataGroup,
       .value = "auto",
       .choices = {"auto", "folder", "tsv", "csv", "jsonl"},
       .verbs = kRunning,
       .help = "Form of the data; auto goes by the directory or the file's ending."},
      {.key = "dataset_encoding",
       .type = Type::choice,
       .group = kDataGroup,
       .value = "utf8",
       .choices = {"utf8", "utf8_or_latin1"},
       .verbs = kRunning,
       .help = "Encoding of the data. utf8_or_latin1 reads a file that is not UTF-8 as Latin-1, "
               "which never fails and turns other encodings into wrong letters."},
      {.key = "text_column",
       .type = Type::text,
       .group = kDataGroup,
       .value = "auto",
       .can_be_auto = true,
       .aliases = {{"text_column_name"}, {"dataset_text_field"}},
       .verbs = kRunning,
       .help = "Column (or JSON key) that holds the text, by name or by number from 0."},
      {.key = "text_pair_column",
       .type = Type::text,
       .group = kDataGroup,
       .value = "",
       .verbs = kRunning,
       .help = "Column that holds a second text, for tasks on pairs; empty for none."},
      {.key = "label_column",
       .type = Type::text,
       .group = kDataGroup,
       .value = "auto",
       .can_be_auto = true,
       .aliases = {{"label_column_name"}},
       .verbs = kRunning,
       .help = "Column (or JSON key) that holds the label, by name or by number from 0."},
      {.key = "max_length",
       .type = Type::integer,
       .group = kDataGroup,
       .value = "auto",
       .unit = "tokens",
       .can_be_auto = true,
       .range = {3, 1048576},
       .aliases =
           {{"max_seq_length"}, {"max_seq_len"}, {"cutoff_len"}, {"sequence_len"}, {"seq_len"}},
       .verbs = kRunning,
       .help = "Longer texts are cut to this many tokens; auto is the model's limit, at most 2048. "
               "Memory and "
               "time grow with it, faster than in proportion."},

      // ---- Output
      {.key = "output_dir",
       .type = Type::path,
       .group = kOutputGroup,
       .value = "auto",
       .can_be_auto = true,
       .aliases = {{"output", "", true}, {"out_dir"}},
       .verbs = kTraining | kExport,
       .help = "Where the result is written; auto makes a new directory under runs/."},
      {.key = "resume_from_checkpoint",
       .type = Type::path,
       .group = kOutputGroup,
       .value = "",
       .aliases = {{"resume", "", true}, {"continue"}},
       .verbs = kTrain,
       .help =
           "Go on with a run: its directory (its last complete checkpoint is taken), or one of "
           "its checkpoint-N. Settings are the run's own; what is given beside it changes them. "
           "The bits are those of a run that never stopped."},
      {.key = "new_identity",
       .type = Type::boolean,
       .group = kOutputGroup,
       .value = "false",
       .verbs = kTrain,
       .help = "Resume although what fixes the run's bits has changed (batch sizes, dtype, seed, "
               "data, device, build): it goes on, with other bits."},
      {.key = "save_strategy",
       .type = Type::choice,
       .group = kOutputGroup,
       .value = "steps",
       .choices = {"steps", "epoch", "no"},
       .help =
           "When a checkpoint is written: every save_steps, at the end of each epoch, or never. "
           "Without one a run that is killed starts again."},
      {.key = "save_steps",
       .type = Type::interval,
       .group = kOutputGroup,
       .value = "auto",
       .unit = "steps, share of all steps below 1, or time",
       .can_be_auto = true,
       .range = {0, kMaxInteger},
       .help = "Steps or time (30min) between two checkpoints; auto is every 30 minutes, at most 2 "
               "% of the time, and "
               "at the end."},
      {.key = "save_total_limit",
       .type = Type::integer,
       .group = kOutputGroup,
       .value = "2",
       .unit = "checkpoints",
       .range = {1, 1000000},
       .help =
           "Checkpoints kept; older ones are removed once a newer one is complete. Each takes 12 "
           "bytes a parameter of disk, 8 with optim = adamw_bf16, 6 with adamw_8bit."},

      // ---- Batch and schedule
      {.key = "train_batch_size",
       .type = Type::integer,
       .group = kScheduleGroup,
       .value = "32",
       .unit = "samples",
       .range = {1, 1048576},
       .aliases = {{"batch_size"}, {"global_batch_size"}},
       .help = "Samples in one optimizer step: the hyper-parameter that changes what is learned. "
               "Larger is "
               "steadier and wants a larger learning_rate; memory does not depend on it."},
      {.key = "per_device_train_batch_size",
       .type = Type::integer,
       .group = kScheduleGroup,
       .value = "auto",
       .unit = "samples",
       .can_be_auto = true,
       .range = {1, 1048576},
       .aliases = {{"micro_batch_size"}},
       .verbs = kRunning,
       .help = "Samples that go through the model at once (micro-batch). Larger is faster until "
               "memory ends; "
               "auto lets the planner choose."},
      {.key = "token_sizes",
       .type = Type::text,
       .group = kScheduleGroup,
       .value = "auto",
       .can_be_auto = true,
       .help = "What the token counts of micro-batches are rounded up to, as 64,448,512. auto "
               "takes up to eight that fit the run's texts, when it begins; they belong to what "
               "fixes its bits, and a run that goes on keeps them."},
      {.key = "gradient_accumulation_steps",
       .type = Type::integer,
       .group = kScheduleGroup,
       .value = "auto",
       .can_be_auto = true,
       .range = {1, 1048576},
       .aliases = {{"grad_accumulation"}, {"grad_accum"}},
       .help = "Micro-batches in one step; auto follows from the two batch sizes."},
      {.key = "num_train_epochs",
       .type = Type::number,
       .group = kScheduleGroup,
       .value = "3",
       .unit = "epochs",
       .range = {0, 1000000},
       .aliases = {{"epochs", "", true}, {"num_epochs"}},
       .help = "Passes over the training data, fractions allowed. More learns more and overfits in "
               "the end."},
      {.key = "max_steps",
       .type = Type::integer,
       .group = kScheduleGroup,
       .value = "-1",
       .unit = "steps",
       .range = {-1, kMaxInteger},
       .aliases = {{"steps"}},
       .help = "Stop after this many optimizer steps, whatever num_train_epochs says; -1 goes by "
               "epochs."},
      {.key = "max_time",
       .type = Type::duration,
       .group = kScheduleGroup,
       .value = "0",
       .unit = "time: 90s, 30min, 8h, 2d",
       .range = {0, 315360000},
       .help =
           "End after this much time in training steps of the whole run, resumed parts "
           "included: it evaluates, saves and finishes as at its last step. The schedule is not "
           "shortened, so a run that ends early has not seen its lowest rates; 0 sets no "
           "limit."},
      {.key = "learning_rate",
       .type = Type::number,
       .group = kScheduleGroup,
       .value = "2e-5",
       .range = {0, 1},
       .aliases = {{"lr"}},
       .help = "Peak step size of the optimizer. Too large diverges, too small learns nothing in "
               "the time: "
               "1e-5 to 5e-5 suits fine-tuning of encoders, small models take more."},
      {.key = "lr_scheduler_type",
       .type = Type::choice,
       .group = kScheduleGroup,
       .value = "linear",
       .choices = {"linear", "cosine", "cosine_with_min_lr", "cosine_with_restarts", "polynomial",
                   "inverse_sqrt", "constant", "noam", "exponential", "wsd"},
       .aliases = {{"lr_scheduler"}, {"lr_schedule"}},
       .help =
           "How the learning rate goes on after warm-up. linear and cosine end at zero and suit "
           "fine-tuning; wsd stays and falls over the last lr_decay_steps, so a run can be made "
           "longer; inverse_sqrt and noam never end. As transformers (noam, exponential: "
           "BMTrain) defines them."},
      {.key = "min_lr_rate",
       .type = Type::number,
       .group = kScheduleGroup,
       .value = "0",
       .unit = "share of learning_rate",
       .range = {0, 1},
       .help = "What cosine_with_min_lr, polynomial and wsd end at. Above 0 the last steps still "
               "learn."},
      {.key = "lr_num_cycles",
       .type = Type::number,
       .group = kScheduleGroup,
       .value = "1",
       .unit = "cycles",
       .range = {0, 1000000},
       .aliases = {{"num_cycles"}},
       .help = "How often cosine_with_restarts falls from the whole learning rate; "
               "more falls leave each less time to settle."},
      {.key = "lr_power",
       .type = Type::number,
       .group = kScheduleGroup,
       .value = "1",
       .range = {0, 100},
       .help = "Exponent of the polynomial schedule: 1 is linear, more falls sooner."},
      {.key = "lr_gamma",
       .type = Type::number,
       .group = kScheduleGroup,
       .value = "0.95",
       .range = {0, 1},
       .help = "Factor of each step of the exponential schedule; 0.95 halves the rate every 14 "
               "steps."},
      {.key = "lr_decay_steps",
       .type = Type::steps,
       .group = kScheduleGroup,
       .value = "0.1",
       .unit = "steps, or share of all steps below 1",
       .range = {0, kMaxInteger},
       .help =
           "The last steps of a wsd schedule, in which the rate falls; fewer learn longer at the "
           "whole rate and settle less."},
      {.key = "warmup_steps",
       .type = Type::steps,
       .group = kScheduleGroup,
       .value = "0.03",
       .unit = "steps, or share of all steps below 1",
       .range = {0, kMaxInteger},
       .aliases = {{"warmup_ratio"}},
       .help = "The learning rate climbs from zero over these steps. Longer is safer at a high "
               "learning_rate."},

      // ---- Optimizer
      {.key = "optim",
       .type = Type::choice,
       .group = kOptimizerGroup,
       .value = "adamw",
       .choices = {"adamw", "adamw_bf16", "adamw_8bit"},
       .choice_aliases = {{"adamw_torch", "adamw"},
                          {"adamw_torch_fused", "adamw"},
                          {"adamw_hf", "adamw"},
                          {"adamw_bnb_8bit", "adamw_8bit"}},
       .aliases = {{"optimizer"}},
       .help =
           "AdamW with decoupled weight decay, as torch.optim.AdamW defines it. adamw: states in "
           "fp32, 8 bytes a parameter. adamw_bf16: in 4 bytes; adamw_8bit: in 2. Fewer bytes "
           "leave room for larger models, and are fewer to move; what they lose is rounded up or "
           "down at random, which adds some noise to the steps and no drift. With "
           "adamw_8bit, m is off by less than 1/8 of itself and the root of v by 1/16, and a "
           "parameter learns too slowly whose gradients are some 10,000 times smaller than its "
           "neighbours'."},
      {.key = "master",
       .type = Type::choice,
       .group = kOptimizerGroup,
       .value = "fp32",
       .choices = {"fp32", "split"},
       .aliases = {{"master_weights"}},
       .help =
           "How the fp32 weights that AdamW updates are kept. fp32: beside those the model "
           "computes with. split, with dtype = bf16: the model's weights are their upper halves, "
           "only the lower ones lie beside them; 2 bytes a parameter less, the same training but "
           "for weights that lie halfway between two of bf16, which round away from zero."},
      {.key = "weight_decay",
       .type = Type::number,
       .group = kOptimizerGroup,
       .value = "0",
       .range = {0, 1},
       .help = "Pull of the weights towards zero, per step and learning rate; biases and norms are "
               "left out. "
               "0.01 is usual against overfitting."},
      {.key = "adam_beta1",
       .type = Type::number,
       .group = kOptimizerGroup,
       .value = "0.9",
       .range = {0, 1, true},
       .aliases = {{"beta1"}},
       .help = "Decay of AdamW's mean of gradients; higher is smoother and turns later."},
      {.key = "adam_beta2",
       .type = Type::number,
       .group = kOptimizerGroup,
       .value = "0.999",
       .range = {0, 1, true},
       .aliases = {{"beta2"}},
       .help =
           "Decay of AdamW's mean of squared gradients; lower reacts faster and is less steady."},
      {.key = "adam_epsilon",
       .type = Type::number,
       .group = kOptimizerGroup,
       .value = "1e-8",
       .range = {1e-20, 1},
       .aliases = {{"adam_eps"}},
       .help = "Added to AdamW's denominator; larger damps steps of tensors with tiny gradients."},
      {.key = "max_grad_norm",
       .type = Type::number,
       .group = kOptimizerGroup,
       .value = "1",
       .range = {0, 1e9},
       .aliases = {{"clip_grad_norm"}, {"grad_clip"}, {"gradient_clipping"}},
       .help = "Gradients with a larger norm are scaled down to it; 0 switches clipping off: "
               "then the CPU updates weights while the backward still runs, which is faster "
               "where they live in host memory, but a pause waits for the end of the step."},

      {.key = "freeze",
       .type = Type::list,
       .group = kOptimizerGroup,
       .value = "",
       .aliases = {{"freeze_patterns"}},
       .help = "Parameters that stay as they are, as patterns over their Hugging Face names "
               "separated by commas: 'bert.embeddings.*,bert.encoder.layer.[0-3].*' (* any text, ? "
               "one character, [0-3] one of these). Below the lowest trained block there is no "
               "backward; a block frozen whole has no gradients and Adam states. Freezing more "
               "saves memory and time, and adapts less."},
      {.key = "param_groups",
       .type = Type::groups,
       .group = kOptimizerGroup,
       .value = "",
       .help =
           "Learning rate (lr), factor of the learning rate (factor) and weight decay (decay) "
           "of the parameters that a pattern names (see freeze): 'classifier.*:lr=1e-4,decay=0; "
           "bert.embeddings.*:factor=0.1'. The first pattern that names a parameter counts. The "
           "schedule applies to each; lr leaves layerwise_lr_decay out, and decay is for biases "
           "and norms too where they are named. In TOML also [[param_groups]] with pattern, "
           "learning_rate, lr_factor, weight_decay, at the end of the file."},
      {.key = "layerwise_lr_decay",
       .type = Type::number,
       .group = kOptimizerGroup,
       .value = "1",
       .range = {0.01, 1},
       .aliases = {{"layer_decay"}, {"llrd"}},
       .help =
           "Factor x of the learning rate from layer to layer towards the input: layer i = 0, 1, "
           "... of n has learning_rate * x^(n - i), the head the whole, the embeddings "
           "x^(n + 1) (ULMFiT's discriminative rates, counted as BEiT does). 1 is the same for "
           "all; 0.8 to 0.95 keeps more of what was pre-trained."},

      // ---- Regularisation
      {.key = "label_smoothing_factor",
       .type = Type::number,
       .group = kRegularGroup,
       .value = "0",
       .range = {0, 1, true},
       .aliases = {{"label_smoothing"}},
       .help = "Share of each label spread over all classes; 0.1 makes overconfident classifiers "
               "milder."},
      {.key = "hidden_dropout",
       .type = Type::number,
       .group = kRegularGroup,
       .value = "auto",
       .can_be_auto = true,
       .range = {0, 0.999},
       .aliases = {{"hidden_dropout_prob"}},
       .help = "Dropout after each sub-layer; auto is what the model's config.json says. Its masks "
               "are drawn again in the backward, and cost no memory."},
      {.key = "attention_dropout",
       .type = Type::number,
       .group = kRegularGroup,
       .value = "auto",
       .can_be_auto = true,
       .range = {0, 0.999},
       .aliases = {{"attention_probs_dropout_prob"}},
       .help = "Dropout of attention weights; auto is what the model's config.json says."},

      // ---- Precision and repeatability
      {.key = "dtype",
       .type = Type::choice,
       .group = kPrecisionGroup,
       .value = "auto",
       .choices = {"auto", "fp32", "bf16", "fp16"},
       .choice_aliases = {{"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}},
       .aliases = {{"bf16", "bf16"}, {"fp16", "fp16"}, {"compute_type"}, {"torch_dtype"}},
       .verbs = kRunning,
       .help =
           "Type the model computes in; master weights keep fp32's bits. auto: bf16 on GPUs from "
           "sm_80, fp16 "
           "with loss scaling on sm_75, fp32 on a CPU. 16-bit halves memory and transfers."},
      {.key = "seed",
       .type = Type::integer,
       .group = kPrecisionGroup,
       .value = "42",
       .range = {0, kMaxInteger},
       .help = "Seed of new weights and dropout; the same seed gives the same bits."},
      {.key = "data_seed",
       .type = Type::integer,
       .group = kPrecisionGroup,
       .value = "auto",
       .can_be_auto = true,
       .range = {0, kMaxInteger},
       .help = "Seed of the order of samples and of the held-out share; auto is seed."},
      {.key = "deterministic",
       .type = Type::boolean,
       .group = kPrecisionGroup,
       .value = "true",
       .aliases = {{"full_determinism"}},
       .verbs = kRunning,
       .help = "The same bits wherever the bytes live and whenever it runs. false may be some "
               "percent faster "
               "on a GPU."},

      // ---- Memory and placement
      {.key = "device",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "cuda", "cpu", "simulated"},
       .aliases = {{"use_cpu", "cpu"}},
       .verbs = kRunning,
       .help = "Where the model computes; auto takes the GPU if there is a usable one. simulated "
               "is a GPU "
               "played by the CPU, for tests."},
      {.key = "gpu_memory",
       .type = Type::bytes,
       .group = kMemoryGroup,
       .value = "auto",
       .unit = "bytes, or 11GiB",
       .can_be_auto = true,
       .range = {1048576, kMaxInteger},
       .verbs = kRunning,
       .help =
           "GPU memory that may be taken, counted as the driver counts: other programs on the "
           "card are in it. What does not fit streams from host memory; auto takes what is free "
           "but a margin."},
      {.key = "host_memory",
       .type = Type::bytes,
       .group = kMemoryGroup,
       .value = "auto",
       .unit = "bytes, or 48GiB",
       .can_be_auto = true,
       .range = {1048576, kMaxInteger},
       .verbs = kRunning,
       .help = "Host memory Ferry may take; auto reads free memory and the cgroup's limit, "
               "and keeps a margin."},
      {.key = "placement",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "resident", "host"},
       .verbs = kRunning,
       .help =
           "For experiments: weights and states all on the device (resident) or all in host memory "
           "(host). auto takes the fastest of both that fits. Never changes the result."},
      {.key = "activations",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "keep", "selective", "recompute", "host"},
       .aliases = {{"gradient_checkpointing", "recompute"},
                   {"enable_activation_checkpointing", "recompute"}},
       .help =
           "For experiments: what happens to tensors saved for the backward. keep is fastest, "
           "selective makes each layer's largest again (of BERT two fifths of them, for a tenth "
           "more computing), recompute all of them (a third more), host costs transfers. auto "
           "keeps as much as fits. Never changes the result."},
      {.key = "boundaries",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "gpu", "host"},
       .help = "For experiments: outputs of blocks, which the backward reads again, on the device "
               "(gpu) or sent to host memory and fetched back (host). auto takes the host only "
               "where nothing fits otherwise. Never changes the result."},
      {.key = "accumulation_order",
       .type = Type::choice,
       .group = kMemoryGroup,
       .value = "auto",
       .choices = {"auto", "horizontal", "vertical"},
       .help = "For experiments: the whole model per micro-batch (horizontal, less saved), or all "
               "micro-batches block by block (vertical, weights transferred once). Never changes "
               "the result."},
      {.key = "optimizer_overlap",
       .type = Type::boolean,
       .group = kMemoryGroup,
       .value = "true",
       .help = "For experiments: the CPU updates parameters while the device computes. false shows "
               "what that "
               "saves. Never changes the result."},
      {.key = "slots",
       .type = Type::integer,
       .group = kMemoryGroup,
       .value = "auto",
       .can_be_auto = true,
       .range = {2, 1024},
       .verbs = kRunning,
       .help = "For experiments: regions of device memory that hold one block's weights each. More "
               "hide "
               "transfers better and leave less memory for activations."},

      // ---- Threads
      {.key = "worker_threads",
       .type = Type::integer,
       .group = kThreadGroup,
       .value = "auto",
       .can_be_auto = true,
       .range = {1, kMaxThreads},
       .help = "Threads that update parameters and convert weights. Never changes the result."},
      {.key = "intra_op_threads",
       .type = Type::integer,
       .group = kThreadGroup,
       .value = "auto",
       .can_be_auto = true,
       .range = {1, kMaxThreads},
       .verbs = kRunning,
       .help = "LibTorch's threads inside one operation on a CPU. Belongs to what fixes the bits "
               "of a run."},

      // ---- Evaluation and logging
      {.key = "eval_strategy",
       .type = Type::choice,
       .group = kReportGroup,
       .value = "epoch",
       .choices = {"epoch", "steps", "no"},
       .aliases = {{"evaluation_strategy"}},
       .help = "Evaluate at the end of each epoch or every eval_steps, where there is data for it, "
               "and once at the end. Training waits meanwhile; no leaves more time to it."},
      {.key = "eval_steps",
       .type = Type::interval,
       .group = kReportGroup,
       .value = "500",
       .unit = "steps, share of all steps below 1, or time",
       .range = {0, kMaxInteger},
       .help = "Steps or time (30min) between two evaluations with eval_strategy = steps. More "
               "often shows sooner "
               "where overfitting begins, and takes more time."},
      {.key = "load_best_model_at_end",
       .type = Type::boolean,
       .group = kReportGroup,
       .value = "false",
       .help = "final/ is the model of the best evaluation, not of the last step. A checkpoint is "
               "written at each new best one, and kept."},
      {.key = "metric_for_best_model",
       .type = Type::text,
       .group = kReportGroup,
       .value = "loss",
       .help =
           "What an evaluation is judged by: loss, accuracy, f1, f1_macro, pearson, ..., as the "
           "evaluations print it."},
      {.key = "greater_is_better",
       .type = Type::choice,
       .group = kReportGroup,
       .value = "auto",
       .choices = {"auto", "true", "false"},
       .help = "Whether a larger metric_for_best_model is better; auto: not for losses and "
               "errors."},
      {.key = "early_stopping_patience",
       .type = Type::integer,
       .group = kReportGroup,
       .value = "0",
       .unit = "evaluations",
       .range = {0, kMaxInteger},
       .help = "Stop after so many evaluations in a row without a better metric_for_best_model; 0 "
               "never does. Few save time, but a plateau may end the run."},
      {.key = "early_stopping_threshold",
       .type = Type::number,
       .group = kReportGroup,
       .value = "0",
       .range = {0, 1e6},
       .help = "By how much a metric must improve to count for early_stopping_patience; more stops "
               "sooner on a plateau."},
      {.key = "logging_steps",
       .type = Type::integer,
       .group = kReportGroup,
       .value = "500",
       .unit = "steps",
       .range = {1, kMaxInteger},
       .help = "Write a line with loss, learning rate and gradient norm every so many steps; "
               "a smaller number shows trouble sooner and makes a longer log."},
      {.key = "report_to",
       .type = Type::choice,
       .group = kReportGroup,
       .value = "tensorboard",
       .choices = {"tensorboard", "none"},
       .help = "Curves for TensorBoard in the run's tensorboard/; none leaves metrics.jsonl alone, "
               "which is always written."},
      {.key = "machine",
       .type = Type::text,
       .group = kReportGroup,
       .value = "auto",
       .can_be_auto = true,
       .verbs = kPlan,
       .help = "Plans for a machine that is not here, by its profile's name: 2080ti-11g, 4090-24g "
               "and others (presets/machines/); auto is this one, as ferry doctor measured it."},
      {.key = "simulate",
       .type = Type::path,
       .group = kReportGroup,
       .value = "auto",
       .can_be_auto = true,
       .verbs = kPlan,
       .help =
           "A file for a Chrome trace of two steps as they are expected to run: when each block "
           "is computed, copied and updated. auto writes none."},
      {.key = "trace",
       .type = Type::path,
       .group = kReportGroup,
       .value = "auto",
       .can_be_auto = true,
       .help =
           "A file for a Chrome trace (chrome://tracing, Perfetto) of the first ten steps: when "
           "each block was computed, copied and updated. auto writes none. Costs some "
           "microseconds an action in those steps."},
  };
  return table;
}

}  // namespace ferry::config
