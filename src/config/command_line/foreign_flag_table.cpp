// The table of foreign_flags(): arguments of Hugging Face's Trainer and its example scripts, then
// keys of recipes: arguments of LLaMA-Factory, axolotl's schemas, TRL's SFTConfig and scripts.

#include <algorithm>

#include "src/config/command_line/foreign_flags.h"

namespace ferry::config {
namespace {

constexpr std::string_view kAllWeights =
    "this version has no such adapters and no such quantised weights: tuning = lora streams the "
    "model's 16-bit weights from host memory, and quantization = nf4 or int8 makes them smaller. "
    "`ferry plan` says whether they fit; for all weights optim = adamw_8bit with master = split "
    "takes the least memory";
constexpr std::string_view kChats =
    "chats are rows of messages or conversations, which task = causal-lm reads: chat_template "
    "names a template, chat_template_kwargs is what it is given, train_on_turns says which turns "
    "are trained, text_column which column holds them";
constexpr std::string_view kNoPreference =
    "pairs of a chosen and a rejected answer are trained on with --task preference "
    "(preference_loss "
    "says which loss) or --task reward, good and bad answers with --task kto; this version has no "
    "PPO and GRPO";
constexpr std::string_view kReference =
    "the log-probabilities of the first weights are computed before step 1, and kept with the run";
constexpr std::string_view kNewTokens =
    "this version adds no tokens to a model. Add them with transformers (add_tokens, "
    "resize_token_embeddings, save_pretrained), and train the directory that it writes";
constexpr std::string_view kAnswersAlone =
    "of a row with a prompt and a completion the completion alone is trained on; in a row of one "
    "text all of it is";
constexpr std::string_view kCurves = "curves go to tensorboard/ and metrics.jsonl";
constexpr std::string_view kTextAlone = "texts alone are trained on, without pictures or sounds";
constexpr std::string_view kNoSetting = "this version has no such setting";
constexpr std::string_view kOwnPlacement =
    "Ferry places weights and states by itself: gpu_memory and host_memory say how much it may "
    "take";
constexpr std::string_view kTokenFiles =
    "tokens are kept in token_cache, and made again where the texts or the tokenizer changed";
constexpr std::string_view kShareOfEpoch = "it is a whole number of times, 1 or more";
constexpr std::string_view kRates =
    "param_groups gives parameters a learning rate of their own: "
    "'*embed*:lr=1e-5'";
constexpr std::string_view kSeveralGpus =
    "--gpus says how many GPUs share a step, and gpu_split, pipe_size, sp_size, tp_size and "
    "zero_level how";
constexpr std::string_view kOwnKernels = "Ferry chooses its kernels itself";
constexpr std::string_view kNoHub = "nothing is sent to a hub";
constexpr std::string_view kNoPadding =
    "micro-batches hold no padding, so there is none to make or to save";
constexpr std::string_view kOneProcess = "texts are read and tokenized once, before the first step";
constexpr std::string_view kDataFiles =
    "give a folder or a .csv, .tsv, .json, .jsonl, .parquet, .arrow or .txt file with --dataset";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/** A flag with a value. It changes nothing; where `harmless` names values, only with one of them.
 */
ForeignFlag value(std::string_view names, std::string_view reason, std::string_view harmless = {}) {
  return {.names = words_of(names), .harmless = words_of(harmless), .reason = reason};
}

/** The same for a flag that may stand alone. */
ForeignFlag boolean(std::string_view names,
                    std::string_view reason,
                    std::string_view harmless = {}) {
  ForeignFlag flag = value(names, reason, harmless);
  flag.is_boolean = true;
  return flag;
}

ForeignFlag refused(std::string_view names,
                    std::string_view reason,
                    std::string_view harmless = {}) {
  ForeignFlag flag = value(names, reason, harmless);
  flag.is_refused = true;
  return flag;
}

}  // namespace

const std::vector<ForeignFlag>& foreign_flags() {
  static const std::vector<ForeignFlag> table = {
      boolean("do_train", "`ferry train` trains; `ferry eval` and `ferry predict` do the rest",
              "true"),
      boolean("do_eval", "a run evaluates where eval_dataset or eval_fraction gives it texts"),
      boolean("do_predict",
              "a run writes its predictions on held-out texts; `ferry predict` labels others"),
      boolean("overwrite_output_dir",
              "a run needs a new or empty output_dir and overwrites nothing"),
      value("per_device_eval_batch_size eval_batch_size",
            "evaluation takes per_device_train_batch_size or what fits, with the same result"),
      value("eval_accumulation_steps eval_do_concat_batches batch_eval_metrics include_for_metrics "
            "include_inputs_for_metrics",
            "an evaluation writes its predictions to a file as they come"),
      boolean("prediction_loss_only eval_use_gather_object",
              "an evaluation writes its predictions to a file as they come"),
      boolean("eval_on_start", "eval_strategy and eval_steps say when a run evaluates", "false"),
      value("train_sampling_strategy",
            "each epoch takes the texts in an order drawn from data_seed", "random"),
      value("dataloader_num_workers dataloader_prefetch_factor preprocessing_num_workers "
            "dataloader_multiprocessing_context",
            kOneProcess),
      boolean(
          "dataloader_pin_memory dataloader_persistent_workers dataloader_in_order overwrite_cache",
          kOneProcess),
      boolean("dataloader_drop_last", "the last step of an epoch takes the samples that are left",
              "false"),
      boolean("group_by_length pad_to_max_length", kNoPadding),
      value("length_column_name pad_to_multiple_of", kNoPadding),
      boolean("label_all_tokens", "the first token of a word has its tag, the others have no loss",
              "false"),
      boolean("return_entity_level_metrics", "the scores are those of all entities together",
              "false"),
      boolean("version_2_with_negative", "the data shows whether questions may have no answer"),
      value("n_best_size", "the 20 best starts, ends and answers are compared", "20"),
      value("null_score_diff_threshold",
            "no answer is given where it is likelier than the best one", "0"),
      boolean("remove_unused_columns",
              "only text_column, text_pair_column and label_column are read"),
      boolean("tf32", "fp32 is computed as fp32; dtype = bf16 is the fast way on such a GPU"),
      boolean("bf16_full_eval fp16_full_eval", "evaluation computes in dtype, as training does"),
      value("half_precision_backend fp16_backend fp16_opt_level flash_attn attn_implementation "
            "torch_compile_backend torch_compile_mode torch_empty_cache_steps "
            "gradient_checkpointing_kwargs liger_kernel_config torch_compile_options",
            kOwnKernels),
      boolean("torch_compile use_liger_kernel use_ipex jit_mode_eval use_cache", kOwnKernels),
      boolean("auto_find_batch_size",
              "the plan finds the micro-batch that fits before training starts"),
      value("ddp_* local_rank", kSeveralGpus),
      boolean("average_tokens_across_devices", kSeveralGpus),
      value("log_level log_level_replica logging_strategy",
            "a line is written every logging_steps, and metrics.jsonl has every step"),
      value("logging_dir", "the curves are in the run's tensorboard/"),
      boolean(
          "logging_first_step logging_nan_inf_filter log_on_each_node disable_tqdm "
          "skip_memory_metrics include_num_input_tokens_seen include_tokens_per_second plot_loss",
          "metrics.jsonl has loss, tokens, time and memory of every step"),
      value("run_name", "a run is called by its directory, output_dir"),
      value("wandb_* trackio_* project", kCurves),
      boolean("save_safetensors", "weights are written as safetensors", "true"),
      boolean("enable_jit_checkpoint", "Ctrl-C and SIGTERM save a checkpoint"),
      boolean("save_only_model save_on_each_node",
              "a checkpoint has all that a resume with the same bits needs"),
      boolean("restore_callback_states_from_checkpoint ignore_data_skip",
              "a resumed run goes on with the sample it had come to", "false"),
      boolean("push_to_hub hub_always_push",
              "nothing is sent to a hub; `hf upload NAME RUN/final` does", "false"),
      value("hub_*", kNoHub),
      value(
          "cache_dir token use_auth_token hf_hub_token hf_use_auth_token ms_hub_token om_hub_token",
          "a login and the cache are those of Hugging Face's tools: HF_TOKEN, HF_HOME"),
      value("model_revision",
            "nothing is fetched; give the directory of that revision with --model", "main"),
      boolean("trust_remote_code", "no code of a model is ever run"),
      boolean("use_fast_tokenizer", "tokenizer.json is read, the fast form"),
      boolean("ignore_mismatched_sizes", "a head for other labels is initialised anew, and said"),
      refused("deepspeed fsdp fsdp_config accelerator_config parallelism_config",
              "Ferry offloads by itself: leave it out; gpu_memory and host_memory say how much it "
              "may take"),
      refused("max_predict_samples",
              "make a shorter file, for example with head, and give it with --dataset"),
      refused("task_name dataset_config_name dataset_config dataset_dir data_dir data_files "
              "dataset_split",
              kDataFiles),
      refused("streaming dataset_streaming",
              "leave it out: tokens are kept in a file, so texts need not fit into memory"),
      refused("model_type",
              "config.json names the model's family; for another one --from-config takes a "
              "config.json with its model_type and sizes",
              "*forcausallm automodel*"),
      refused("config_overrides",
              "--from-config takes a config.json: set model_type and sizes in it"),
      refused("lr_scheduler_kwargs",
              "use min_lr_rate, lr_num_cycles, lr_power, lr_gamma or lr_decay_steps", "{}"),
      refused("optim_args optim_target_modules adafactor adam_beta3 adam_epsilon2",
              "optim is adamw, adamw_bf16, adamw_8bit, lion or sgd; adam_beta1, adam_beta2, "
              "adam_epsilon, weight_decay, momentum and nesterov are its settings"),
      refused("neftune_noise_alpha mlm_probability line_by_line", kNoSetting),
      refused("eval_delay", "eval_strategy and eval_steps say when a run evaluates"),
      refused("debug",
              "--trace FILE writes what the first steps do; `ferry doctor` looks at the machine"),

      // Keys of recipes.
      {.names = words_of("stage"),
       .is_refused = true,
       .meanings = {{"pt", "task", "causal-lm"},
                    {"sft", "task", "causal-lm"},
                    {"dpo", "task", "preference"},
                    {"kto", "task", "kto"},
                    {"rm", "task", "reward"}},
       .reason = kNoPreference},
      {.names = words_of("rl"),
       .is_refused = true,
       .meanings = {{"dpo", "task", "preference"}, {"kto", "task", "kto"}},
       .reason = kNoPreference},
      {.names = words_of("saves_per_epoch"), .steps_key = "save_steps", .reason = kShareOfEpoch},
      {.names = words_of("evals_per_epoch"), .steps_key = "eval_steps", .reason = kShareOfEpoch},
      boolean("completion_only_loss", kAnswersAlone, "true"),
      boolean("train_on_inputs train_on_prompt train_on_inputs_and_outputs", kAnswersAlone,
              "false"),
      value("loss_type", kNoSetting, "nll chunked_nll"),
      boolean(
          "low_cpu_mem_usage use_unsloth use_unsloth_gc use_reentrant_gc activation_offloading "
          "layer_offloading fsdp_offload_params offload_optimizer disable_gradient_checkpointing "
          "chunked_cross_entropy low_memory large_head_attention",
          kOwnPlacement),
      value("device_map offload_folder max_memory gc_steps gc_collect_steps "
            "chunked_cross_entropy_num_chunks selective_checkpointing recompute_granularity "
            "recompute_method recompute_num_layers",
            kOwnPlacement),
      value("flash_attention flash_attn_* flash_optimum xformers_attention sdp_attention "
            "sdpa_varlen eager_attention flex_attention sage_attention enable_liger_kernel liger_* "
            "use_kernels use_v1_kernels cut_cross_entropy cross_entropy_loss_fusion "
            "bias_activation_fusion masked_softmax_fusion apply_rope_fusion tiled_mlp deepcompile "
            "use_kv_cache upcast_layernorm upcast_lmhead_output fp32_norms embeddings_skip_upcast "
            "tokenizer_use_fast flex_attn_compile_kwargs experts_implementation fused_attn_kernel "
            "tiled_mlp_num_shards tiled_mlp_use_original_mlp",
            kOwnKernels),
      value("plugins", "no code of other projects is run"),
      boolean("strict is_falcon_derived_model is_llama_derived_model is_mistral_derived_model "
              "is_qwen_derived_model tokenizer_legacy print_param_status ignore_bias_buffers "
              "save_first_step",
              "nothing depends on it here"),
      value("type_of_model tokenizer_type cls_model_config trainer_cls axolotl_config_path "
            "download_mode torch_version",
            "nothing depends on it here"),
      value("pad_to_sequence_len eval_sample_packing eval_packing padding_free batch_flattening "
            "multipack_real_batches sample_packing_* pretrain_multipack_* "
            "ignore_pad_token_for_loss calculate_per_token_loss",
            "micro-batches hold no padding, and no text sees another, packed or not"),
      value("packing_strategy", "packing puts whole texts into a sample; none is cut to fill it",
            "bfd ffd"),
      value("excess_length_strategy", "texts that are longer than max_length are cut to it",
            "truncate"),
      value("truncation_mode", "texts that are longer than max_length are cut at the end",
            "keep_start"),
      value("dataset_num_proc dataset_processes dataset_keep_in_memory preprocessing_batch_size "
            "dataset_prepared_path tokenized_path data_shared_file_system "
            "num_dataset_shards_to_save dataset_shard_num dataset_shard_idx preprocess_shards",
            kTokenFiles),
      boolean("shuffle_merged_datasets shuffle_before_merging_datasets shuffle_dataset",
              "each epoch takes the texts in an order drawn from data_seed", "true"),
      boolean("disable_shuffling curriculum_sampling",
              "each epoch takes the texts in an order drawn from data_seed", "false"),
      value("mix_strategy",
            "several files are one data set: their texts are put together and shuffled", "concat"),
      boolean("eval_on_each_dataset compute_accuracy predict_with_generate do_bench_eval "
              "do_causal_lm_eval include_effective_tokens_per_second include_tkps generate_samples",
              "an evaluation gives loss and perplexity; sample_prompts shows texts of the model"),
      value("eval_causal_lm_metrics eval_table_size eval_max_new_tokens eval_num_beams "
            "num_generation_samples generation_* eval_sequence_len",
            "an evaluation gives loss and perplexity; sample_prompts shows texts of the model"),
      value("dataset_train_split",
            "all rows of dataset are trained on: give the file of another part", "train"),
      value("dataset_test_split",
            "eval_dataset names the data for evaluation, eval_fraction holds some out", "test"),
      boolean("do_sample", "temperature, top_k or top_p draw tokens where they are given"),
      value("num_beams repetition_penalty length_penalty", kNoSetting, "1"),
      boolean("skip_special_tokens", "texts hold no such tokens"),
      boolean(
          "use_wandb use_mlflow use_comet use_trackio use_swanlab use_tensorboard use_otel_metrics",
          kCurves),
      value("mlflow_* comet_* swanlab_* hf_mlflow_log_artifacts otel_* push_dataset_to_hub",
            kCurves),
      value("profiler_* enable_torch_profiler profile_modules",
            "--trace FILE writes what the first steps do"),
      value("loss_watchdog_*",
            "a run whose loss is not a number, step after step, ends with exit code 6"),
      value("image_* video_* audio_* media_dir crop_to_patches use_audio_in_video processor_type "
            "processor_kwargs",
            kTextAlone),
      boolean("freeze_vision_tower freeze_multi_modal_projector freeze_mm_modules "
              "freeze_language_model",
              kTextAlone),
      boolean("auto_resume_from_checkpoints", "`ferry train --resume RUN` goes on with a run",
              "false"),
      value("infer_backend infer_dtype vllm_* sglang_* use_vllm gradio_* serve_module",
            "`ferry generate` goes on with texts by a trained model"),
      value("revision revision_of_model", "give the directory of that revision with --model",
            "main"),
      value("quantization_method", "quantization = nf4 and int8 are those of bitsandbytes",
            "bnb bitsandbytes"),
      value("quantization_type bnb_4bit_quant_type", "quantization says it", "nf4"),
      value("quantization_device_map bnb_4bit_compute_dtype bnb_4bit_quant_storage",
            "dtype says what is computed in, and the planner where weights lie"),
      refused("lora_model_dir lora_on_cpu lora_bias lora_target_parameters lora_fan_in_fan_out "
              "lora_mlp_kernel lora_qkv_kernel lora_o_kernel "
              "lora_embedding_kernel adapter_folder "
              "adapter_name_or_path create_new_adapter merge_lora "
              "model_quantization_* quantization_config qlora* loftq_* oft_* pissa_* galore_* "
              "qgalore_* "
              "use_galore apollo_* use_apollo badam_* use_badam lisa_* relora* jagged_restart_* "
              "use_llama_pro module_dropout gptq qat fp8 fp8_* use_onebitllms kt_* use_kt",
              kAllWeights),
      refused("train_on_eos train_on_eot", "the token that ends an answer is trained with it",
              "turn"),
      refused("roles_to_train", kChats, "assistant gpt"),
      refused("chat_template_jinja tool_format default_system default_system_message "
              "enable_thinking preserve_thinking template_thinking_key "
              "split_thinking train_on_last_step_only eot_tokens messages conversations "
              "conversation roles chat",
              kChats),
      value("precompute_ref_log_probs", kReference, "true"),
      refused("rl_* dpo dpo_* kto orpo ppo_* grpo grpo_* pref_bco_weight ref_model "
              "ref_model_* reward_* ld_alpha trl "
              "sync_ref_model process_reward_model "
              "center_rewards_coefficient num_generations chosen_format rejected_format",
              kNoPreference),
      refused("special_tokens additional_special_tokens tokens add_tokens add_special_tokens "
              "new_special_tokens_config init_special_tokens added_tokens_overrides resize_vocab "
              "resize_token_embeddings resize_token_embeddings_to_32x shrink_embeddings "
              "mean_resizing_embeddings fix_untrained_tokens",
              kNewTokens, "{} []"),
      refused("eos_token bos_token unk_token split_special_tokens tokenizer_config "
              "tokenizer_use_mistral_common",
              "the tokenizer is read from the model's directory as it is: change "
              "tokenizer_config.json there"),
      value("pad_token", kNoPadding),
      refused("rope_scaling overrides_of_model_config overrides_of_model_kwargs base_model_config "
              "model_init_kwargs num_labels mixture_of_depths config_kwargs",
              "the model's config.json says it: change it there, in a copy of the directory", "{}"),
      refused("train_from_scratch reinit_weights",
              "--from-config CONFIG in place of --model draws new weights"),
      refused("shift_attn s2_attention use_pose pose_* noisy_embedding_alpha use_dft_loss "
              "use_eaft* use_asft* eaft_* asft_alpha router_aux_loss_coef moe_aux_loss_coef "
              "use_adam_mini use_muon dion_* cosine_constant_lr_ratio lr_quadratic_warmup "
              "lr_div_factor min_sample_len buffer_size ebft diffusion",
              kNoSetting),
      refused("embedding_lr embedding_lr_scale loraplus_lr_embedding lr_groups", kRates),
      refused("unfrozen_parameters freeze_trainable_layers freeze_trainable_modules "
              "freeze_extra_modules",
              "freeze names the parameters that stay as they are: "
              "'model.embed_tokens.*,model.layers.[0-9].*'"),
      refused("pure_bf16",
              "the weights that are updated keep fp32's bits: dtype = bf16, and master = split "
              "holds them in 4 bytes a parameter"),
      refused("type ds_type formatting field field_* message_field_* "
              "message_property_mappings input_format input_transform prompt_format",
              "the form of a row shows in its columns; text_column and text_pair_column name them"),
      refused("datasets", "--dataset takes one or several: files with commas between them"),
      refused("test_datasets bench_dataset bench_split",
              "--eval-dataset names the data for evaluation"),
      refused("pretraining_dataset",
              "--dataset names the texts, and --task causal-lm trains a language model on them"),
      refused("dataset_kwargs skip_prepare_dataset dataset_exact_deduplication",
              "rows are read as they stand in the files", "{}"),
      refused("export_* ms_*", "`ferry export --model RUN --output DIR` writes a trained model"),
      refused("n_shot lang task_dir save_dir",
              "`ferry eval` measures a model on a file of data; there are no benchmarks"),
      refused("fsdp_* ddp sequence_parallel expert_model_parallel_size data_parallel_size "
              "dp_replicate_size dp_shard_size n_gpu "
              "n_node ray_* use_ray megatron_* use_megatron_bridge use_mca hyper_parallel_* "
              "use_hyper_parallel use_distributed_optimizer heads_k_stride ring_attn_func",
              kSeveralGpus, "1"),
  };
  return table;
}

}  // namespace ferry::config
