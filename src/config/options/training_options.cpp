// How a model is trained: options of the schedule, the optimizer and regularisation.

#include "src/config/options/option_groups.h"

namespace ferry::config {
namespace {

constexpr std::string_view kScheduleGroup = "Batch and schedule", kOptimizerGroup = "Optimizer",
                           kPreferenceGroup = "Pairs of answers", kRegularGroup = "Regularisation";
constexpr std::string_view kCosine =
    "lr_scheduler_type = cosine, with warmup_steps, is the nearest";
constexpr std::string_view kPaged =
    "Ferry itself keeps states in host memory where the GPU has no room for them";
constexpr std::string_view kFewBytes =
    "optim = adamw_8bit is the nearest: AdamW with 2 bytes of states a parameter; with master = "
    "split it takes the least memory";
constexpr std::string_view kHalfBytes =
    "optim = adamw_bf16 is the nearest: AdamW with 4 bytes of states a parameter";
constexpr std::string_view kOnlyAdamW = "optim = adamw is the nearest";
constexpr std::string_view kOnlyLion =
    "optim = lion is the nearest: Lion with 4 bytes of states a parameter";

}  // namespace

std::vector<Option> training_options() {
  return {
      // ---- Batch and schedule
      {.key = "train_batch_size",
       .label = "Batch size",
       .type = Type::integer,
       .group = kScheduleGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "32",
       .unit = "samples",
       .range = {1, 1048576},
       .aliases = {{"batch_size"}, {"global_batch_size"}},
       .help = "Samples in one optimizer step: the hyper-parameter that changes what is learned. "
               "Larger is steadier and wants a larger learning_rate; memory hardly depends on it "
               "once a step has several micro-batches. Where only per_device_train_batch_size is "
               "given, a step has that many. Of a decoder 16 where nothing is given."},
      {.key = "per_device_train_batch_size",
       .label = "Micro-batch size",
       .type = Type::integer,
       .group = kScheduleGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .unit = "samples",
       .can_be_auto = true,
       .range = {1, 1048576},
       .aliases = {{"micro_batch_size"}},
       .verbs = kReading,
       .help = "Samples that go through the model at once (micro-batch). Larger is faster until "
               "memory ends; auto lets the planner choose. Given without train_batch_size and "
               "gradient_accumulation_steps it is the whole step, as in transformers' Trainer."},
      {.key = "token_sizes",
       .label = "Token counts of micro-batches",
       .type = Type::text,
       .group = kScheduleGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .can_be_auto = true,
       .help = "What the token counts of micro-batches are rounded up to, as 64,448,512. auto "
               "takes up to eight that fit the run's texts, when it begins; they belong to what "
               "fixes its bits, and a run that goes on keeps them."},
      {.key = "gradient_accumulation_steps",
       .label = "Micro-batches a step",
       .type = Type::integer,
       .group = kScheduleGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .unit = "micro-batches",
       .can_be_auto = true,
       .range = {1, 1048576},
       .aliases = {{"grad_accumulation"}, {"grad_accum"}},
       .help = "Micro-batches in one step; auto follows from the two batch sizes."},
      {.key = "num_train_epochs",
       .label = "Epochs",
       .type = Type::number,
       .group = kScheduleGroup,
       .level = Level::basic,
       .effect = Effect::changes_training,
       .value = "3",
       .unit = "epochs",
       .range = {0, 1000000},
       .aliases = {{"epochs", "", true}, {"num_epochs"}},
       .help = "Passes over the training data, fractions allowed. More learns more and overfits in "
               "the end."},
      {.key = "max_steps",
       .label = "Maximum steps",
       .type = Type::integer,
       .group = kScheduleGroup,
       .level = Level::basic,
       .effect = Effect::changes_training,
       .value = "-1",
       .unit = "steps",
       .special = {"-1", "by epochs"},
       .range = {-1, kMaxInteger},
       .aliases = {{"steps"}},
       .help = "Stop after this many optimizer steps, whatever num_train_epochs says; -1 goes by "
               "epochs."},
      {.key = "max_time",
       .label = "Maximum time",
       .type = Type::duration,
       .group = kScheduleGroup,
       .effect = Effect::changes_training,
       .value = "0",
       .unit = "time: 90s, 30min, 8h, 2d",
       .special = {"0", "no limit"},
       .range = {0, 315360000},
       .help =
           "End after this much time in training steps of the whole run, resumed parts "
           "included: it evaluates, saves and finishes as at its last step. The schedule is not "
           "shortened, so a run that ends early has not seen its lowest rates; 0 sets no "
           "limit."},
      {.key = "learning_rate",
       .label = "Learning rate",
       .type = Type::number,
       .group = kScheduleGroup,
       .level = Level::basic,
       .effect = Effect::changes_training,
       .value = "2e-5",
       .unit = "size of a step",
       .range = {0, 1},
       .aliases = {{"lr"}},
       .help = "Peak step size of the optimizer. Too large diverges, too small learns nothing in "
               "the time: "
               "1e-5 to 5e-5 suits fine-tuning of encoders, small models take more. The "
               "default of a decoder is 1e-5, of a model from scratch 3e-4, of adapters 2e-4."},
      {.key = "lr_scheduler_type",
       .label = "Learning rate schedule",
       .type = Type::choice,
       .group = kScheduleGroup,
       .effect = Effect::changes_training,
       .value = "linear",
       .choices = {"linear", "cosine", "cosine_with_min_lr", "cosine_with_restarts", "polynomial",
                   "inverse_sqrt", "constant", "noam", "exponential", "wsd"},
       .choice_aliases = {{"constant_with_warmup", "constant"},
                          {"cosine_warmup_with_min_lr", "cosine_with_min_lr"},
                          {"warmup_stable_decay", "wsd"},
                          {"one_cycle", "", kCosine},
                          {"rex", "", kCosine},
                          {"greedy", "", kCosine},
                          {"reduce_lr_on_plateau", "", kCosine}},
       .aliases = {{"lr_scheduler"}, {"lr_schedule"}},
       .help =
           "How the learning rate goes on after warm-up. linear and cosine end at zero and suit "
           "fine-tuning; wsd stays and falls over the last lr_decay_steps, so a run can be made "
           "longer; inverse_sqrt and noam never end. As transformers (noam, exponential: "
           "BMTrain) defines them."},
      {.key = "min_lr_rate",
       .label = "Lowest learning rate",
       .type = Type::number,
       .group = kScheduleGroup,
       .effect = Effect::changes_training,
       .value = "0",
       .unit = "share of learning_rate",
       .special = {"0", "zero"},
       .range = {0, 1},
       .aliases = {{"cosine_min_lr_ratio"}},
       .help = "What cosine_with_min_lr, polynomial and wsd end at. Above 0 the last steps still "
               "learn."},
      {.key = "lr_num_cycles",
       .label = "Schedule cycles",
       .type = Type::number,
       .group = kScheduleGroup,
       .effect = Effect::changes_training,
       .value = "1",
       .unit = "cycles",
       .range = {0, 1000000},
       .aliases = {{"num_cycles"}},
       .help = "How often cosine_with_restarts falls from the whole learning rate; "
               "more falls leave each less time to settle."},
      {.key = "lr_power",
       .label = "Schedule power",
       .type = Type::number,
       .group = kScheduleGroup,
       .effect = Effect::changes_training,
       .value = "1",
       .unit = "exponent",
       .range = {0, 100},
       .help = "Exponent of the polynomial schedule: 1 is linear, more falls sooner."},
      {.key = "lr_gamma",
       .label = "Schedule decay",
       .type = Type::number,
       .group = kScheduleGroup,
       .effect = Effect::changes_training,
       .value = "0.95",
       .unit = "factor a step",
       .range = {0, 1},
       .help = "Factor of each step of the exponential schedule; 0.95 halves the rate every 14 "
               "steps."},
      {.key = "lr_decay_steps",
       .label = "Decay steps",
       .type = Type::steps,
       .group = kScheduleGroup,
       .effect = Effect::changes_training,
       .value = "0.1",
       .unit = "steps, or share of all steps below 1",
       .range = {0, kMaxInteger},
       .help =
           "The last steps of a wsd schedule, in which the rate falls; fewer learn longer at the "
           "whole rate and settle less."},
      {.key = "warmup_steps",
       .label = "Warm-up steps",
       .type = Type::steps,
       .group = kScheduleGroup,
       .effect = Effect::changes_training,
       .value = "0.03",
       .unit = "steps, or share of all steps below 1",
       .range = {0, kMaxInteger},
       .aliases = {{"warmup_ratio"}},
       .help = "The learning rate climbs from zero over these steps. Longer is safer at a high "
               "learning_rate."},

      // ---- Optimizer
      {.key = "optim",
       .label = "Optimizer",
       .type = Type::choice,
       .group = kOptimizerGroup,
       .effect = Effect::fixes_bits,
       .value = "adamw",
       .choices = {"adamw", "adamw_bf16", "adamw_8bit", "lion", "sgd"},
       .choice_aliases = {{"adamw_torch", "adamw"},
                          {"adamw_torch_fused", "adamw"},
                          {"adamw_hf", "adamw"},
                          {"adamw_apex_fused", "adamw"},
                          {"adamw_bnb_8bit", "adamw_8bit"},
                          {"adamw_torch_8bit", "adamw_8bit"},
                          {"paged_adamw", "adamw", kPaged},
                          {"paged_adamw_32bit", "adamw", kPaged},
                          {"paged_adamw_8bit", "adamw_8bit", kPaged},
                          {"paged_ademamix_8bit", "", kFewBytes},
                          {"paged_ademamix_32bit", "", kOnlyAdamW},
                          {"paged_lion_8bit", "", kOnlyLion},
                          {"paged_lion_32bit", "lion", kPaged},
                          {"ademamix", "", kOnlyAdamW},
                          {"ademamix_8bit", "", kFewBytes},
                          {"adafactor", "", kFewBytes},
                          {"lion_32bit", "lion"},
                          {"lion_pytorch", "lion"},
                          {"lion_8bit", "", kOnlyLion},
                          {"adamw_torch_4bit", "", kFewBytes},
                          {"adamw_anyprecision", "", kHalfBytes},
                          {"galore_adamw", "", kFewBytes},
                          {"galore_adamw_8bit", "", kFewBytes},
                          {"galore_adafactor", "", kFewBytes},
                          {"galore_adamw_layerwise", "", kFewBytes},
                          {"galore_adamw_8bit_layerwise", "", kFewBytes},
                          {"q_galore_adamw8bit", "", kFewBytes},
                          {"apollo_adamw", "", kFewBytes},
                          {"apollo_adamw_layerwise", "", kFewBytes},
                          {"lomo", "", kFewBytes},
                          {"adalomo", "", kFewBytes},
                          {"came_pytorch", "", kFewBytes},
                          {"adagrad", "", kOnlyAdamW},
                          {"rmsprop", "", kOnlyAdamW},
                          {"muon", "", kOnlyAdamW},
                          {"dion", "", kOnlyAdamW},
                          {"grokadamw", "", kOnlyAdamW},
                          {"stable_adamw", "", kOnlyAdamW},
                          {"schedule_free_adamw", "", kOnlyAdamW},
                          {"optimi_adamw", "", kOnlyAdamW},
                          {"ao_adamw_8bit", "adamw_8bit"},
                          {"ao_adamw_4bit", "", kFewBytes},
                          {"ao_adamw_fp8", "", kFewBytes}},
       .aliases = {{"optimizer"}},
       .help =
           "adamw: AdamW with decoupled weight decay, as torch.optim.AdamW defines it, with states "
           "in fp32, 8 bytes a parameter. adamw_bf16: in 4 bytes; adamw_8bit: in 2. lion: Lion as "
           "its paper defines it, 4 bytes; its learning rate is 3 to 10 times smaller than "
           "AdamW's, its weight decay as much larger. sgd: as torch.optim.SGD, without states, or "
           "with momentum 4 bytes. Fewer bytes "
           "leave room for larger models, and are fewer to move; what they lose is rounded up or "
           "down at random, which adds some noise to the steps and no drift, but that v of "
           "adamw_8bit settles some 2 % high. With adamw_8bit, m is off by less than 1/8 of itself "
           "and the root of v by 1/16, and a parameter learns too slowly whose gradients are some "
           "10,000 times smaller than its neighbours'."},
      {.key = "master",
       .label = "Master weights",
       .type = Type::choice,
       .group = kOptimizerGroup,
       .effect = Effect::fixes_bits,
       .value = "fp32",
       .choices = {"fp32", "split"},
       .aliases = {{"master_weights"}},
       .help =
           "How the fp32 weights that the optimizer updates are kept. fp32: beside those the model "
           "computes with. split, with dtype = bf16: the model's weights are their upper halves, "
           "only the lower ones lie beside them; 2 bytes a parameter less, the same training but "
           "for weights that lie halfway between two of bf16, which round away from zero."},
      {.key = "weight_decay",
       .label = "Weight decay",
       .type = Type::number,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "0",
       .unit = "factor of learning_rate",
       .special = {"0", "off"},
       .range = {0, 1},
       .help = "Pull of the weights towards zero, per step and learning rate; biases and norms are "
               "left out. 0.01 is usual against overfitting. With optim = sgd it is part of the "
               "gradient, and so of the momentum."},
      {.key = "adam_beta1",
       .label = "Adam beta 1",
       .type = Type::number,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "0.9",
       .unit = "share kept a step",
       .range = {0, 1, true},
       .aliases = {{"beta1"}},
       .help =
           "Decay of AdamW's mean of gradients; higher is smoother and turns later. With optim = "
           "lion the share of the mean in the direction of a step."},
      {.key = "adam_beta2",
       .label = "Adam beta 2",
       .type = Type::number,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "0.999",
       .unit = "share kept a step",
       .range = {0, 1, true},
       .aliases = {{"beta2"}},
       .help =
           "Decay of AdamW's mean of squared gradients; lower reacts faster and is less steady. "
           "With optim = lion the decay of the mean of gradients, 0.99 in its paper."},
      {.key = "adam_epsilon",
       .label = "Adam epsilon",
       .type = Type::number,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "1e-8",
       .unit = "size of a gradient",
       .range = {1e-20, 1},
       .aliases = {{"adam_eps"}},
       .help = "Added to AdamW's denominator; larger damps steps of tensors with tiny gradients."},
      {.key = "momentum",
       .label = "Momentum",
       .type = Type::number,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "0",
       .unit = "share kept a step",
       .special = {"0", "off"},
       .range = {0, 1, true},
       .aliases = {{"sgd_momentum"}},
       .help = "Share of the last step's direction that optim = sgd goes on in. 0.9 is usual; it "
               "takes 4 bytes a parameter."},
      {.key = "nesterov",
       .label = "Nesterov's momentum",
       .type = Type::boolean,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "false",
       .help = "Momentum that looks a step ahead: optim = sgd adds the gradient to the direction "
               "once more."},
      {.key = "max_grad_norm",
       .label = "Largest gradient norm",
       .type = Type::number,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "1",
       .unit = "norm of all gradients",
       .special = {"0", "off"},
       .range = {0, 1e9},
       .aliases = {{"clip_grad_norm"}, {"grad_clip"}, {"gradient_clipping"}},
       .help = "Gradients with a larger norm are scaled down to it; 0 switches clipping off: "
               "then the CPU updates weights while the backward still runs, which is faster "
               "where they live in host memory, but a pause waits for the end of the step."},

      {.key = "freeze",
       .label = "Frozen parameters",
       .type = Type::list,
       .group = kOptimizerGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .aliases = {{"freeze_patterns"}},
       .help = "Parameters that stay as they are, as patterns over their Hugging Face names "
               "separated by commas: 'bert.embeddings.*,bert.encoder.layer.[0-3].*' (* any text, ? "
               "one character, [0-3] one of these). Below the lowest trained block there is no "
               "backward; a frozen parameter has no gradient and no Adam states. Freezing more "
               "saves memory and time, and adapts less."},
      {.key = "param_groups",
       .label = "Parameter groups",
       .type = Type::groups,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "",
       .help =
           "Learning rate (lr), factor of the learning rate (factor) and weight decay (decay) "
           "of the parameters that a pattern names (see freeze): 'classifier.*:lr=1e-4,decay=0; "
           "bert.embeddings.*:factor=0.1'. The first pattern that names a parameter counts. The "
           "schedule applies to each; lr leaves layerwise_lr_decay out, and decay is for biases "
           "and norms too where they are named. In TOML also [[param_groups]] with pattern, "
           "learning_rate, lr_factor, weight_decay, at the end of the file."},
      {.key = "layerwise_lr_decay",
       .label = "Layer-wise rate decay",
       .type = Type::number,
       .group = kOptimizerGroup,
       .effect = Effect::changes_training,
       .value = "1",
       .unit = "factor for each layer",
       .special = {"1", "same everywhere"},
       .range = {0.01, 1},
       .aliases = {{"layer_decay"}, {"llrd"}},
       .help =
           "Factor x of the learning rate from layer to layer towards the input: layer i = 0, 1, "
           "... of n has learning_rate * x^(n - i), the head the whole, the embeddings "
           "x^(n + 1) (ULMFiT's discriminative rates, counted as BEiT does). 1 is the same for "
           "all; 0.8 to 0.95 keeps more of what was pre-trained."},

      // ---- Pairs of answers
      {.key = "preference_loss",
       .label = "Loss of a pair",
       .type = Type::choice,
       .group = kPreferenceGroup,
       .effect = Effect::fixes_bits,
       .value = "sigmoid",
       .choices = {"sigmoid", "hinge", "ipo", "robust", "sigmoid_norm", "nca_pair", "sppo_hard",
                   "apo_zero", "apo_down", "orpo", "simpo", "cpo"},
       .choice_aliases = {{"dpo", "sigmoid"}, {"slic", "hinge"}},
       .aliases = {{"pref_loss"}, {"dpo_loss_type"}},
       .help = "Loss of a chosen and a rejected answer (task = preference), by the names of TRL: "
               "sigmoid is DPO. orpo, simpo and cpo need no reference; for the others the answers "
               "are first evaluated with the weights that the run begins with."},
      {.key = "preference_beta",
       .label = "Beta",
       .type = Type::number,
       .group = kPreferenceGroup,
       .effect = Effect::changes_training,
       .value = "auto",
       .unit = "factor of the log-probabilities",
       .can_be_auto = true,
       .range = {1e-6, 1000},
       .aliases = {{"beta"}, {"pref_beta"}, {"dpo_beta"}, {"orpo_alpha"}},
       .help = "How closely the model keeps to its reference: less lets it go further (task = "
               "preference). auto is 0.1, with simpo 2."},
      {.key = "preference_margin",
       .label = "Margin",
       .type = Type::number,
       .group = kPreferenceGroup,
       .effect = Effect::changes_training,
       .value = "0.5",
       .unit = "log-odds",
       .range = {0, 1000},
       .aliases = {{"simpo_gamma"}},
       .help =
           "By how much the chosen answer is to be ahead with preference_loss = simpo: gamma of "
           "its paper."},
      {.key = "preference_sft",
       .label = "Weight of the chosen answers",
       .type = Type::number,
       .group = kPreferenceGroup,
       .effect = Effect::changes_training,
       .value = "auto",
       .unit = "factor of their loss",
       .can_be_auto = true,
       .range = {0, 1000},
       .aliases = {{"rpo_alpha"}, {"cpo_alpha"}, {"pref_ftx"}, {"dpo_ftx"}},
       .help = "Weight of the usual loss of a language model on the chosen answers, which is added "
               "to that of the pairs (task = preference). auto is 1 with orpo and cpo, else 0."},

      {.key = "kto_good_weight",
       .label = "Weight of good answers",
       .type = Type::number,
       .group = kPreferenceGroup,
       .effect = Effect::changes_training,
       .value = "1",
       .unit = "factor of their loss",
       .range = {0, 1000},
       .aliases = {{"desirable_weight"}, {"kto_desirable_weight"}, {"kto_chosen_weight"}},
       .help = "What a good answer counts in the loss of task = kto. Good and bad answers should "
               "weigh alike: weight * number of the good ones from 1 to 1.33 times that of the bad "
               "ones."},
      {.key = "kto_bad_weight",
       .label = "Weight of bad answers",
       .type = Type::number,
       .group = kPreferenceGroup,
       .effect = Effect::changes_training,
       .value = "1",
       .unit = "factor of their loss",
       .range = {0, 1000},
       .aliases = {{"undesirable_weight"}, {"kto_undesirable_weight"}, {"kto_rejected_weight"}},
       .help = "What a bad answer counts in the loss of task = kto: less where most are bad."},

      // ---- Regularisation
      {.key = "label_smoothing_factor",
       .label = "Label smoothing",
       .type = Type::number,
       .group = kRegularGroup,
       .effect = Effect::changes_training,
       .value = "0",
       .unit = "share of a label",
       .special = {"0", "off"},
       .range = {0, 1, true},
       .aliases = {{"label_smoothing"}},
       .help = "Share of each label spread over all classes; 0.1 makes overconfident classifiers "
               "milder. With task = preference: the share of pairs taken to be the wrong way "
               "round (cDPO)."},
      {.key = "class_weights",
       .label = "Class weights",
       .type = Type::text,
       .group = kRegularGroup,
       .effect = Effect::changes_training,
       .value = "none",
       .aliases = {{"class_weight"}},
       .help = "What a text counts in the loss by its label (classification): auto makes rare "
               "labels count more, texts / (labels * texts of the label); or a number for each "
               "label, in their order, with commas between them; none: all count the same."},
      {.key = "hidden_dropout",
       .label = "Hidden dropout",
       .type = Type::number,
       .group = kRegularGroup,
       .effect = Effect::changes_training,
       .value = "auto",
       .unit = "share dropped",
       .can_be_auto = true,
       .range = {0, 0.999},
       .aliases = {{"hidden_dropout_prob"}},
       .help = "Dropout after each sub-layer; auto is what the model's config.json says. Its masks "
               "are drawn again in the backward, and cost no memory."},
      {.key = "attention_dropout",
       .label = "Attention dropout",
       .type = Type::number,
       .group = kRegularGroup,
       .effect = Effect::changes_training,
       .value = "auto",
       .unit = "share dropped",
       .can_be_auto = true,
       .range = {0, 0.999},
       .aliases = {{"attention_probs_dropout_prob"}},
       .help = "Dropout of attention weights; auto is what the model's config.json says."},
  };
}

}  // namespace ferry::config
