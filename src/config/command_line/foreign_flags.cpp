#include "src/config/command_line/foreign_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/config/command_line/recipe_flags.h"
#include "src/config/options/option.h"
#include "src/config/options/value.h"

namespace ferry::config {
namespace {

constexpr std::string_view kNoHub = "nothing is sent to a hub";
constexpr std::string_view kNoPadding =
    "micro-batches hold no padding, so there is none to make or to save";
constexpr std::string_view kOneProcess = "texts are read and tokenized once, before the first step";
constexpr std::string_view kDataFiles =
    "give a folder or a .csv, .tsv, .json, .jsonl, .parquet, .arrow or .txt file with --dataset";

std::vector<ForeignFlag> harmless_flags() {
  return {
      {.names = {"do_train"},
       .is_boolean = true,
       .harmless = {"true"},
       .reason = "`ferry train` trains; `ferry eval` and `ferry predict` do the rest"},
      {.names = {"do_eval"},
       .is_boolean = true,
       .reason = "a run evaluates where eval_dataset or eval_fraction gives it texts"},
      {.names = {"do_predict"},
       .is_boolean = true,
       .reason = "a run writes its predictions on held-out texts; `ferry predict` labels others"},
      {.names = {"overwrite_output_dir"},
       .is_boolean = true,
       .reason = "a run needs a new or empty output_dir and overwrites nothing"},
      {.names = {"per_device_eval_batch_size", "eval_batch_size"},
       .reason = "evaluation takes per_device_train_batch_size or what fits, with the same result"},
      {.names = {"eval_accumulation_steps", "eval_do_concat_batches", "batch_eval_metrics",
                 "include_for_metrics", "include_inputs_for_metrics"},
       .reason = "an evaluation writes its predictions to a file as they come"},
      {.names = {"prediction_loss_only", "eval_use_gather_object"},
       .is_boolean = true,
       .reason = "an evaluation writes its predictions to a file as they come"},
      {.names = {"eval_on_start"},
       .is_boolean = true,
       .harmless = {"false"},
       .reason = "eval_strategy and eval_steps say when a run evaluates"},
      {.names = {"train_sampling_strategy"},
       .harmless = {"random"},
       .reason = "each epoch takes the texts in an order drawn from data_seed"},
      {.names = {"dataloader_num_workers", "dataloader_prefetch_factor",
                 "preprocessing_num_workers", "dataloader_multiprocessing_context"},
       .reason = kOneProcess},
      {.names = {"dataloader_pin_memory", "dataloader_persistent_workers", "dataloader_in_order",
                 "overwrite_cache"},
       .is_boolean = true,
       .reason = kOneProcess},
      {.names = {"dataloader_drop_last"},
       .is_boolean = true,
       .harmless = {"false"},
       .reason = "the last step of an epoch takes the samples that are left"},
      {.names = {"group_by_length", "pad_to_max_length"}, .is_boolean = true, .reason = kNoPadding},
      {.names = {"length_column_name", "pad_to_multiple_of"}, .reason = kNoPadding},
      {.names = {"label_all_tokens"},
       .is_boolean = true,
       .harmless = {"false"},
       .reason = "the first token of a word has its tag, the others have no loss"},
      {.names = {"return_entity_level_metrics"},
       .is_boolean = true,
       .harmless = {"false"},
       .reason = "the scores are those of all entities together"},
      {.names = {"version_2_with_negative"},
       .is_boolean = true,
       .reason = "the data shows whether questions may have no answer"},
      {.names = {"n_best_size"},
       .harmless = {"20"},
       .reason = "the 20 best starts, ends and answers are compared"},
      {.names = {"null_score_diff_threshold"},
       .harmless = {"0"},
       .reason = "no answer is given where it is likelier than the best one"},
      {.names = {"remove_unused_columns"},
       .is_boolean = true,
       .reason = "only text_column, text_pair_column and label_column are read"},
      {.names = {"tf32"},
       .is_boolean = true,
       .reason = "fp32 is computed as fp32; dtype = bf16 is the fast way on such a GPU"},
      {.names = {"bf16_full_eval", "fp16_full_eval"},
       .is_boolean = true,
       .reason = "evaluation computes in dtype, as training does"},
      {.names = {"half_precision_backend", "fp16_backend", "fp16_opt_level", "flash_attn",
                 "attn_implementation", "torch_compile_backend", "torch_compile_mode",
                 "torch_empty_cache_steps", "gradient_checkpointing_kwargs", "liger_kernel_config",
                 "torch_compile_options"},
       .reason = kOwnKernels},
      {.names = {"torch_compile", "use_liger_kernel", "use_ipex", "jit_mode_eval", "use_cache"},
       .is_boolean = true,
       .reason = kOwnKernels},
      {.names = {"auto_find_batch_size"},
       .is_boolean = true,
       .reason = "the plan finds the micro-batch that fits before training starts"},
      {.names = {"ddp_*", "local_rank"}, .reason = kOneGpu},
      {.names = {"average_tokens_across_devices"}, .is_boolean = true, .reason = kOneGpu},
      {.names = {"log_level", "log_level_replica", "logging_strategy"},
       .reason = "a line is written every logging_steps, and metrics.jsonl has every step"},
      {.names = {"logging_dir"}, .reason = "the curves are in the run's tensorboard/"},
      {.names = {"logging_first_step", "logging_nan_inf_filter", "log_on_each_node", "disable_tqdm",
                 "skip_memory_metrics", "include_num_input_tokens_seen",
                 "include_tokens_per_second", "plot_loss"},
       .is_boolean = true,
       .reason = "metrics.jsonl has loss, tokens, time and memory of every step"},
      {.names = {"run_name"}, .reason = "a run is called by its directory, output_dir"},
      {.names = {"wandb_*", "trackio_*", "project"},
       .reason = "curves go to tensorboard/ and metrics.jsonl"},
      {.names = {"save_safetensors"},
       .is_boolean = true,
       .harmless = {"true"},
       .reason = "weights are written as safetensors"},
      {.names = {"enable_jit_checkpoint"},
       .is_boolean = true,
       .reason = "Ctrl-C and SIGTERM save a checkpoint"},
      {.names = {"save_only_model", "save_on_each_node"},
       .is_boolean = true,
       .reason = "a checkpoint has all that a resume with the same bits needs"},
      {.names = {"restore_callback_states_from_checkpoint", "ignore_data_skip"},
       .is_boolean = true,
       .harmless = {"false"},
       .reason = "a resumed run goes on with the sample it had come to"},
      {.names = {"push_to_hub", "hub_always_push"},
       .is_boolean = true,
       .harmless = {"false"},
       .reason = "nothing is sent to a hub; `hf upload NAME RUN/final` does"},
      {.names = {"hub_*"}, .reason = kNoHub},
      {.names = {"cache_dir", "token", "use_auth_token", "hf_hub_token", "hf_use_auth_token",
                 "ms_hub_token", "om_hub_token"},
       .reason = "a login and the cache are those of Hugging Face's tools: HF_TOKEN, HF_HOME"},
      {.names = {"model_revision"},
       .harmless = {"main"},
       .reason = "nothing is fetched; give the directory of that revision with --model"},
      {.names = {"trust_remote_code"},
       .is_boolean = true,
       .reason = "no code of a model is ever run"},
      {.names = {"use_fast_tokenizer"},
       .is_boolean = true,
       .reason = "tokenizer.json is read, the fast form"},
      {.names = {"ignore_mismatched_sizes"},
       .is_boolean = true,
       .reason = "a head for other labels is initialised anew, and said"},
  };
}

std::vector<ForeignFlag> refused_flags() {
  return {
      {.names = {"deepspeed", "fsdp", "fsdp_config", "accelerator_config", "parallelism_config"},
       .is_refused = true,
       .reason = "Ferry offloads by itself: leave it out; gpu_memory and host_memory say how much "
                 "it may take"},
      {.names = {"max_predict_samples"},
       .is_refused = true,
       .reason = "make a shorter file, for example with head, and give it with --dataset"},
      {.names = {"task_name", "dataset_config_name", "dataset_config", "dataset_dir", "data_dir",
                 "data_files", "dataset_split"},
       .is_refused = true,
       .reason = kDataFiles},
      {.names = {"streaming", "dataset_streaming"},
       .is_refused = true,
       .reason = "leave it out: tokens are kept in a file, so texts need not fit into memory"},
      {.names = {"model_type"},
       .is_refused = true,
       .harmless = {"*forcausallm", "automodel*"},
       .reason = "config.json names the model's family; for another one --from-config takes a "
                 "config.json with its model_type and sizes"},
      {.names = {"config_overrides"},
       .is_refused = true,
       .reason = "--from-config takes a config.json: set model_type and sizes in it"},
      {.names = {"lr_scheduler_kwargs"},
       .is_refused = true,
       .harmless = {"{}"},
       .reason = "use min_lr_rate, lr_num_cycles, lr_power, lr_gamma or lr_decay_steps"},
      {.names = {"optim_args", "optim_target_modules", "adafactor", "adam_beta3", "adam_epsilon2"},
       .is_refused = true,
       .reason = "optim is adamw, adamw_bf16, adamw_8bit, lion or sgd; adam_beta1, adam_beta2, "
                 "adam_epsilon, weight_decay, momentum and nesterov are its settings"},
      {.names = {"neftune_noise_alpha", "mlm_probability", "line_by_line"},
       .is_refused = true,
       .reason = "this version has no such setting"},
      {.names = {"eval_delay"},
       .is_refused = true,
       .reason = "eval_strategy and eval_steps say when a run evaluates"},
      {.names = {"debug"},
       .is_refused = true,
       .reason =
           "--trace FILE writes what the first steps do; `ferry doctor` looks at the machine"},
  };
}

/** A pattern may leave its beginning or its end open: "hub_*", "*forcausallm". */
bool is_named(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == name;
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

bool is_value(std::string_view pattern, const std::string& value) {
  if (is_named(pattern, value)) return true;
  const auto wanted = number_of(pattern), given = number_of(value);
  return wanted && wanted == given;
}

/** A value that asks for nothing. */
bool is_off(std::string_view value) {
  const auto truth = parse_boolean(value);
  return is_null(value) || truth == false || number_of(value) == 0.0;
}

}  // namespace

const std::vector<ForeignFlag>& foreign_flags() {
  static const std::vector<ForeignFlag> table = [] {
    std::vector<ForeignFlag> all = harmless_flags();
    for (const auto& part : {refused_flags, recipe_flags})
      std::ranges::move(part(), std::back_inserter(all));
    return all;
  }();
  return table;
}

const ForeignFlag* find_foreign_flag(std::string_view name) {
  std::string wanted(name);
  std::ranges::replace(wanted, '-', '_');
  for (const bool whole : {true, false})  // hub_always_push before hub_*
    for (const ForeignFlag& flag : foreign_flags())
      for (const std::string_view pattern : flag.names)
        if (pattern.ends_with('*') != whole && is_named(pattern, wanted)) return &flag;
  return nullptr;
}

bool is_null(std::string_view value) {
  const std::string word = normalized_name(value);
  return word.empty() || word == "null" || word == "none" || word == "~";
}

const ForeignMeaning* meaning_of(const ForeignFlag& flag, std::string_view value) {
  const std::string word = normalized_name(value);
  for (const ForeignMeaning& meaning : flag.meanings)
    if (is_value(meaning.value, word)) return &meaning;
  return nullptr;
}

std::string accept_foreign_flag(const ForeignFlag& flag,
                                std::string_view written,
                                std::string_view value,
                                std::string_view where) {
  const std::string place = where == written ? "" : fmt::format(" ({})", where);
  const auto truth = parse_boolean(value);
  const std::string_view means = flag.is_boolean && truth ? (*truth ? "true" : "false") : value;
  const std::string word = normalized_name(means);
  const auto is_harmless = [&] {
    return std::ranges::any_of(flag.harmless,
                               [&](std::string_view other) { return is_value(other, word); });
  };
  if (flag.is_refused && !is_off(value) && !is_harmless())
    throw Error(Fault::usage, "config.option", fmt::format("there is no {}{}", written, place),
                flag.reason);
  const bool is_nothing = is_null(value) || word == "auto";
  if (!flag.is_refused && flag.is_boolean && !truth && !is_nothing && !is_harmless())
    throw Error(Fault::usage, "config.value",
                fmt::format("{} = {}{}, expected true or false", written, value, place),
                "leave it out: it changes nothing");
  if (!flag.is_refused && !flag.harmless.empty() && !is_nothing && !is_harmless())
    throw Error(Fault::usage, "config.option",
                fmt::format("there is no {} = {}{}", written, means, place), flag.reason);
  return fmt::format("{}{} changes nothing: {}", written, place, flag.reason);
}

}  // namespace ferry::config
