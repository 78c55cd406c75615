// The config.json of well-known models, key by key as their authors wrote it: each is taken and has
// the parameters that transformers counts, or is refused by the key that Ferry does not compute.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/family.h"
#include "src/base/error.h"
#include "src/files/hf/hf_config.h"

namespace ferry {
namespace {

struct RealConfig {
  const char* name;
  HeadKind head;
  int64_t n_params;  ///< with this head; tied matrices count once
  const char* text;  ///< the fields
};

constexpr HeadKind kLm = HeadKind::causal_lm, kMlm = HeadKind::masked_lm;

const RealConfig kConfigs[] = {
    {"gpt2", kLm, 124439808, R"("activation_function": "gelu_new", "architectures":
["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id":
50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1,
"summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
"summary_type": "cls_index", "summary_use_proj": true, "task_specific_params": {"text-generation":
{"do_sample": true, "max_length": 50}}, "vocab_size": 50257)"},
    {"gpt2-medium", kLm, 354823168, R"("activation_function": "gelu_new", "architectures":
["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id":
50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
"n_embd": 1024, "n_head": 16, "n_layer": 24, "n_positions": 1024, "n_special": 0,
"predict_special_tokens": true, "resid_pdrop": 0.1, "summary_type": "cls_index", "vocab_size":
50257)"},
    {"gpt2-xl", kLm, 1557611200, R"("activation_function": "gelu_new", "attn_pdrop": 0.1,
"bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
"layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 1600, "n_head": 25,
"n_layer": 48, "n_positions": 1024, "output_past": true, "resid_pdrop": 0.1, "vocab_size": 50257)"},
    {"distilgpt2", kLm, 81912576, R"("_num_labels": 1, "activation_function": "gelu_new",
"architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1,
"eos_token_id": 50256, "id2label": {"0": "LABEL_0"}, "initializer_range": 0.02, "label2id":
{"LABEL_0": 0}, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768,
"n_head": 12, "n_layer": 6, "n_positions": 1024, "resid_pdrop": 0.1, "vocab_size": 50257)"},
    {"opt-125m", kLm, 125239296, R"("_name_or_path": "opt-125m", "activation_dropout": 0.0,
"activation_function": "relu", "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0,
"bos_token_id": 2, "hidden_size": 768, "do_layer_norm_before": true, "dropout": 0.1,
"eos_token_id": 2, "ffn_dim": 3072, "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings":
2048, "model_type": "opt", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1,
"prefix": "</s>", "torch_dtype": "float16", "transformers_version": "4.21.0.dev0", "use_cache":
true, "vocab_size": 50272, "word_embed_proj_dim": 768)"},
    {"opt-350m", kLm, 331196416, R"("activation_dropout": 0.0, "activation_function": "relu",
"architectures": ["OPTForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 2, "hidden_size":
1024, "do_layer_norm_before": false, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 4096,
"init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048, "model_type": "opt",
"num_attention_heads": 16, "num_hidden_layers": 24, "pad_token_id": 1, "prefix": "</s>",
"torch_dtype": "float16", "transformers_version": "4.20.0.dev0", "use_cache": true, "vocab_size":
50272, "word_embed_proj_dim": 512)"},
    {"opt-6.7b", kLm, 6658473984, R"("_remove_final_layer_norm": false, "activation_dropout": 0.0,
"activation_function": "relu", "attention_dropout": 0.0, "bos_token_id": 2, "hidden_size": 4096,
"do_layer_norm_before": true, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 16384, "init_std":
0.02, "layerdrop": 0.0, "max_position_embeddings": 2048, "model_type": "opt",
"num_attention_heads": 32, "num_hidden_layers": 32, "pad_token_id": 1, "prefix": "</s>",
"use_cache": true, "vocab_size": 50272, "word_embed_proj_dim": 4096)"},
    {"pythia-160m", kLm, 162322944, R"("architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0,
"eos_token_id": 0, "hidden_act": "gelu", "hidden_size": 768, "initializer_range": 0.02,
"intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type":
"gpt_neox", "num_attention_heads": 12, "num_hidden_layers": 12, "rotary_emb_base": 10000,
"rotary_pct": 0.25, "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true,
"use_parallel_residual": true, "vocab_size": 50304)"},
    {"gpt-neox-20b", kLm, 20554567680, R"("architectures": ["GPTNeoXForCausalLM"],
"attention_probs_dropout_prob": 0, "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu_fast",
"hidden_dropout_prob": 0, "hidden_size": 6144, "initializer_range": 0.02, "intermediate_size":
24576, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
"num_attention_heads": 64, "num_hidden_layers": 44, "rotary_emb_base": 10000, "rotary_pct": 0.25,
"tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true, "vocab_size": 50432)"},
    {"gpt-j-6b", kLm, 6050882784, R"("activation_function": "gelu_new", "architectures":
["GPTJForCausalLM"], "attn_pdrop": 0.0, "bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id":
50256, "gradient_checkpointing": false, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": null, "n_layer": 28, "n_positions":
2048, "resid_pdrop": 0.0, "rotary": true, "rotary_dim": 64, "scale_attn_weights": true,
"summary_type": "cls_index", "task_specific_params": {"text-generation": {"do_sample": true,
"max_length": 50, "temperature": 1.0}}, "tie_word_embeddings": false, "tokenizer_class":
"GPT2Tokenizer", "use_cache": true, "vocab_size": 50400)"},
    {"llama-7b", kLm, 6738415616, R"("architectures": ["LlamaForCausalLM"], "bos_token_id": 1,
"eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
"intermediate_size": 11008, "max_position_embeddings": 2048, "max_sequence_length": 2048,
"model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "pad_token_id": -1,
"rms_norm_eps": 1e-06, "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true,
"vocab_size": 32000)"},
    {"Llama-2-7b-hf", kLm, 6738415616, R"("_name_or_path": "meta-llama/Llama-2-7b-hf",
"architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
"hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 11008,
"max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
"rope_scaling": null, "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true,
"vocab_size": 32000)"},
    {"Meta-Llama-3-8B", kLm, 8030261248, R"("architectures": ["LlamaForCausalLM"],
"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
"hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
"max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
"rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype":
"bfloat16", "use_cache": true, "vocab_size": 128256)"},
    {"Llama-3.1-8B-Instruct", kLm, 8030261248, R"("architectures": ["LlamaForCausalLM"],
"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001,
128008, 128009], "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
"intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false, "model_type":
"llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
"high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
"rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
"vocab_size": 128256)"},
    {"Llama-3.2-1B", kLm, 1235814400, R"("architectures": ["LlamaForCausalLM"], "attention_bias":
false, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64,
"hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
"max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads":
32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
"rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
"original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
"tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256)"},
    {"TinyLlama-1.1B-Chat-v1.0", kLm, 1100048384, R"("architectures": ["LlamaForCausalLM"],
"attention_bias": false, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size":
2048, "initializer_range": 0.02, "intermediate_size": 5632, "max_position_embeddings": 2048,
"model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 22, "num_key_value_heads":
4, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
"tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 32000)"},
    {"SmolLM2-135M", kLm, 134515008, R"("architectures": ["LlamaForCausalLM"], "attention_bias":
false, "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu",
"hidden_size": 576, "initializer_range": 0.041666666666666664, "intermediate_size": 1536,
"is_llama_config": true, "max_position_embeddings": 8192, "model_type": "llama",
"num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "pretraining_tp": 1,
"rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000,
"tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers.js_config": {"dtype": "q4",
"kv_cache_dtype": {"fp16": "float16", "q4f16": "float16"}}, "use_cache": true, "vocab_size":
49152)"},
    {"Mistral-7B-v0.1", kLm, 7241732096, R"("architectures": ["MistralForCausalLM"],
"bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
"initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 32768,
"model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads":
8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings":
false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 32000)"},
    {"Mistral-7B-Instruct-v0.2", kLm, 7241732096, R"("architectures": ["MistralForCausalLM"],
"attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
"hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
"max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
"sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
"vocab_size": 32000)"},
    {"Mistral-7B-v0.3", kLm, 7248023552, R"("architectures": ["MistralForCausalLM"],
"attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
"hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
"max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
"sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
"vocab_size": 32768)"},
    {"Qwen2-0.5B", kLm, 494032768, R"("architectures": ["Qwen2ForCausalLM"], "attention_dropout":
0.0, "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896,
"initializer_range": 0.02, "intermediate_size": 4864, "max_position_embeddings": 131072,
"max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
"num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
"tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window":
false, "vocab_size": 151936)"},
    {"Qwen2.5-7B", kLm, 7615616512, R"("architectures": ["Qwen2ForCausalLM"], "attention_dropout":
0.0, "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 3584,
"initializer_range": 0.02, "intermediate_size": 18944, "max_position_embeddings": 131072,
"max_window_layers": 28, "model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28,
"num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
"tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "use_mrope": false,
"use_sliding_window": false, "vocab_size": 152064)"},
    {"Qwen3-0.6B", kLm, 596049920, R"("architectures": ["Qwen3ForCausalLM"], "attention_bias":
false, "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128,
"hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
"max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
"num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps":
1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings":
true, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false, "vocab_size":
151936)"},
    {"gemma-2b", kLm, 2506172416, R"("architectures": ["GemmaForCausalLM"], "attention_bias":
false, "attention_dropout": 0.0, "bos_token_id": 2, "eos_token_id": 1, "head_dim": 256,
"hidden_act": "gelu", "hidden_activation": null, "hidden_size": 2048, "initializer_range": 0.02,
"intermediate_size": 16384, "max_position_embeddings": 8192, "model_type": "gemma",
"num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1, "pad_token_id": 0,
"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000.0, "torch_dtype": "bfloat16",
"use_cache": true, "vocab_size": 256000)"},
    {"gemma-2-9b", kLm, 9241705984, R"("architectures": ["Gemma2ForCausalLM"], "attention_bias":
false, "attention_dropout": 0.0, "attn_logit_softcapping": 50.0, "bos_token_id": 2,
"cache_implementation": "hybrid", "eos_token_id": 1, "final_logit_softcapping": 30.0, "head_dim":
256, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "hidden_size":
3584, "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 8192,
"model_type": "gemma2", "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads":
8, "pad_token_id": 0, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
"sliding_window": 4096, "sliding_window_size": 4096, "torch_dtype": "float32", "use_cache": true,
"vocab_size": 256000)"},
    {"gemma-3-1b-pt", kLm, 999885952, R"("architectures": ["Gemma3ForCausalLM"], "attention_bias":
false, "attention_dropout": 0.0, "attn_logit_softcapping": null, "bos_token_id": 2,
"cache_implementation": "hybrid", "eos_token_id": 1, "final_logit_softcapping": null, "head_dim":
256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "initializer_range": 0.02,
"intermediate_size": 6912, "max_position_embeddings": 32768, "model_type": "gemma3_text",
"num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1, "pad_token_id": 0,
"query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000, "rope_scaling":
null, "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6, "torch_dtype":
"bfloat16", "use_cache": true, "vocab_size": 262144)"},
    {"gemma-3-4b-it", kLm, 3880263168, R"("architectures": ["Gemma3ForConditionalGeneration"],
"boi_token_index": 255999, "eoi_token_index": 256000, "eos_token_id": [1, 106],
"image_token_index": 262144, "initializer_range": 0.02, "mm_tokens_per_image": 256, "model_type":
"gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type":
"gemma3_text", "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
"sliding_window": 1024}, "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152,
"image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model",
"num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false})"},
    {"Phi-3-mini-4k-instruct", kLm, 3821079552, R"("_name_or_path": "Phi-3-mini-4k-instruct",
"architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
"auto_map": {"AutoConfig": "configuration_phi3.Phi3Config", "AutoModelForCausalLM":
"modeling_phi3.Phi3ForCausalLM"}, "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 32000,
"hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02, "intermediate_size": 8192,
"max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096,
"pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": null,
"rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false, "torch_dtype":
"bfloat16", "use_cache": true, "vocab_size": 32064)"},
    {"Phi-3.5-mini-instruct", kLm, 3821079552, R"("architectures": ["Phi3ForCausalLM"],
"attention_bias": false, "attention_dropout": 0.0, "auto_map": {"AutoConfig":
"configuration_phi3.Phi3Config"}, "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 32000,
"hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02, "intermediate_size": 8192,
"max_position_embeddings": 131072, "model_type": "phi3", "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096,
"pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": {"long_factor":
FACTORS_OF_48, "short_factor": FACTORS_OF_48, "type": "longrope"}, "rope_theta": 10000.0,
"sliding_window": 262144, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache":
true, "vocab_size": 32064)"},
    {"Phi-3-mini-128k-instruct", kLm, 3821079552, R"("architectures": ["Phi3ForCausalLM"],
"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1, "embd_pdrop": 0.0,
"eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02,
"intermediate_size": 8192, "max_position_embeddings": 131072, "model_type": "phi3",
"num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
"original_max_position_embeddings": 4096, "pad_token_id": 32000, "resid_pdrop": 0.0,
"rms_norm_eps": 1e-05, "rope_scaling": {"long_factor": FACTORS_OF_48, "short_factor":
FACTORS_OF_48, "type": "su"}, "rope_theta": 10000.0, "sliding_window": 262144,
"tie_word_embeddings": false, "use_cache": true, "vocab_size": 32064)"},
    {"Phi-4-mini-instruct", kLm, 3836021760, R"("architectures": ["Phi3ForCausalLM"],
"attention_bias": false, "attention_dropout": 0.0, "auto_map": {"AutoTokenizer": "Xenova/gpt-4o"},
"bos_token_id": 199999, "embd_pdrop": 0.0, "eos_token_id": 199999, "full_attn_mod": 1,
"hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02, "intermediate_size": 8192,
"interpolate_factor": 1, "lm_head_bias": false, "max_position_embeddings": 131072, "mlp_bias":
false, "model_type": "phi3", "num_attention_heads": 24, "num_hidden_layers": 32,
"num_key_value_heads": 8, "original_max_position_embeddings": 4096, "pad_token_id": 199999,
"partial_rotary_factor": 0.75, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling":
{"long_factor": FACTORS_OF_48, "short_factor": FACTORS_OF_48, "type": "longrope"}, "rope_theta":
10000.0, "sliding_window": 262144, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
"use_cache": true, "vocab_size": 200064)"},
    {"bert-base-uncased", kMlm, 109514298, R"("architectures": ["BertForMaskedLM"],
"attention_probs_dropout_prob": 0.1, "gradient_checkpointing": false, "hidden_act": "gelu",
"hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size":
3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
"num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "position_embedding_type":
"absolute", "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache": true,
"vocab_size": 30522)"},
    {"bert-base-chinese", kMlm, 102290312, R"("architectures": ["BertForMaskedLM"],
"attention_probs_dropout_prob": 0.1, "directionality": "bidi", "hidden_act": "gelu",
"hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size":
3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
"num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "pooler_fc_size": 768,
"pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3, "pooler_size_per_head": 128,
"pooler_type": "first_token_transform", "type_vocab_size": 2, "vocab_size": 21128)"},
    {"roberta-base", kMlm, 124697433, R"("architectures": ["RobertaForMaskedLM"],
"attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu",
"hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size":
3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "roberta",
"num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "type_vocab_size": 1,
"vocab_size": 50265)"},
    {"xlm-roberta-base", kMlm, 278295186, R"("architectures": ["XLMRobertaForMaskedLM"],
"attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu",
"hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size":
3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "xlm-roberta",
"num_attention_heads": 12, "num_hidden_layers": 12, "output_past": true, "pad_token_id": 1,
"position_embedding_type": "absolute", "transformers_version": "4.17.0.dev0", "type_vocab_size": 1,
"use_cache": true, "vocab_size": 250002)"},
    {"camembert-base", kMlm, 110655493, R"("architectures": ["CamembertForMaskedLM"],
"attention_probs_dropout_prob": 0.1, "bos_token_id": 5, "eos_token_id": 6, "hidden_act": "gelu",
"hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size":
3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "camembert",
"num_attention_heads": 12, "num_hidden_layers": 12, "output_past": true, "pad_token_id": 1,
"type_vocab_size": 1, "vocab_size": 32005)"},
    {"distilbert-base-uncased", kMlm, 66985530, R"("activation": "gelu", "architectures":
["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768, "dropout": 0.1, "hidden_dim":
3072, "initializer_range": 0.02, "max_position_embeddings": 512, "model_type": "distilbert",
"n_heads": 12, "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2,
"sinusoidal_pos_embds": false, "tie_weights_": true, "transformers_version": "4.10.0.dev0",
"vocab_size": 30522)"},
    {"distilbert-base-uncased-finetuned-sst-2-english", HeadKind::classification, 66955010,
     R"("activation": "gelu", "architectures": ["DistilBertForSequenceClassification"],
"attention_dropout": 0.1, "dim": 768, "dropout": 0.1, "finetuning_task": "sst-2", "hidden_dim":
3072, "id2label": {"0": "NEGATIVE", "1": "POSITIVE"}, "initializer_range": 0.02, "label2id":
{"NEGATIVE": 0, "POSITIVE": 1}, "max_position_embeddings": 512, "model_type": "distilbert",
"n_heads": 12, "n_layers": 6, "output_past": true, "pad_token_id": 0, "qa_dropout": 0.1,
"seq_classif_dropout": 0.2, "sinusoidal_pos_embds": false, "tie_weights_": true, "vocab_size":
30522)"},
    {"electra-small-discriminator", HeadKind::classification, 13549314, R"("architectures":
["ElectraForPreTraining"], "attention_probs_dropout_prob": 0.1, "embedding_size": 128,
"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 256, "initializer_range": 0.02,
"intermediate_size": 1024, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type":
"electra", "num_attention_heads": 4, "num_hidden_layers": 12, "pad_token_id": 0,
"position_embedding_type": "absolute", "summary_activation": "gelu", "summary_last_dropout": 0.1,
"summary_type": "first", "summary_use_proj": true, "type_vocab_size": 2, "vocab_size": 30522)"},
    {"electra-base-discriminator", HeadKind::token_classification, 108893186, R"("architectures":
["ElectraForPreTraining"], "attention_probs_dropout_prob": 0.1, "embedding_size": 768,
"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
"intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type":
"electra", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
"type_vocab_size": 2, "vocab_size": 30522)"},
    {"electra-large-generator", kMlm, 51295290, R"("architectures": ["ElectraForMaskedLM"],
"attention_probs_dropout_prob": 0.1, "embedding_size": 1024, "hidden_act": "gelu",
"hidden_dropout_prob": 0.1, "hidden_size": 256, "initializer_range": 0.02, "intermediate_size":
1024, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "electra",
"num_attention_heads": 4, "num_hidden_layers": 24, "pad_token_id": 0, "type_vocab_size": 2,
"vocab_size": 30522)"},
};

/** `text` with what stands for a list of factors. */
std::string written_out(std::string text) {
  constexpr std::string_view kFactors = "FACTORS_OF_48";
  std::string list = "[";
  for (int i = 0; i < 48; ++i)
    list += (i > 0 ? ", " : "") + std::to_string(1 + 0.25 * i);
  list += "]";
  for (size_t at = text.find(kFactors); at != text.npos; at = text.find(kFactors, at))
    text.replace(at, kFactors.size(), list);
  return text;
}

TEST(RealConfigs, AreTakenAndHaveTheParametersThatTransformersCounts) {
  for (const auto& [name, head, n_params, text] : kConfigs) {
    const HfConfig config = HfConfig::parse(written_out("{" + std::string(text) + "}"), name);
    try {
      EXPECT_EQ(make_table(config.fields(), {.head = head}).n_params(), n_params) << name;
    } catch (const Error& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
  }
}

/** The error for the first of kConfigs of this name, with other fields. */
std::string refusal(const char* name, const nlohmann::json& other) {
  const auto* found = std::ranges::find_if(
      kConfigs, [&](const RealConfig& config) { return std::string_view(config.name) == name; });
  auto fields = nlohmann::json::parse(written_out("{" + std::string(found->text) + "}"));
  fields.update(other);
  try {
    make_table(HfConfig::parse(fields.dump(), name).fields(), {.head = found->head});
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 4) << error.what();
    return error.what();
  }
  return "taken";
}

TEST(RealConfigs, AreRefusedByTheKeyThatIsNotComputed) {
  const struct {
    const char* name;
    nlohmann::json fields;
    const char* part;
  } cases[] = {
      {"bert-base-uncased", {{"model_type", "deberta-v2"}}, "model_type deberta-v2"},
      {"bert-base-uncased", {{"position_embedding_type", "relative_key"}}, "position_embedding"},
      {"bert-base-uncased", {{"is_decoder", true}}, "is_decoder"},
      {"distilbert-base-uncased", {{"sinusoidal_pos_embds", true}}, "sinusoidal_pos_embds"},
      {"gpt2", {{"scale_attn_by_inverse_layer_idx", true}}, "scale_attn_by_inverse_layer_idx"},
      {"opt-125m", {{"_remove_final_layer_norm", true}}, "_remove_final_layer_norm"},
      {"opt-125m", {{"enable_bias", false}}, "enable_bias"},
      {"Llama-2-7b-hf",
       {{"quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}}},
       "quantization_config says that the weights are quantised (gptq)"},
      {"gemma-3-4b-it",
       {{"quantization_config", {{"quant_method", "awq"}}}},
       "quantization_config says that the weights are quantised (awq)"},
      {"Meta-Llama-3-8B",
       {{"rope_scaling", {{"rope_type", "spiral"}}}},
       "rope_scaling.rope_type is \"spiral\""},
      {"Qwen2.5-7B", {{"use_mrope", true}}, "use_mrope"},
      {"Mistral-7B-v0.1", {{"num_local_experts", 8}}, "num_local_experts"},
      {"Mistral-7B-v0.1", {{"model_type", "mixtral"}}, "model_type mixtral"},
      {"gemma-2b", {{"use_bidirectional_attention", true}}, "use_bidirectional_attention"},
      {"gemma-2b", {{"hidden_activation", "relu"}}, "hidden_activation"},
      {"gemma-3-1b-pt", {{"attn_logit_softcapping", 50.0}}, "attn_logit_softcapping"},
      {"gemma-3-4b-it", {{"text_config", nullptr}}, "text_config is missing"},
      {"gemma-3-4b-it", {{"text_config", {{"model_type", "gemma4_text"}}}}, "gemma4_text"},
      {"Phi-3-mini-4k-instruct", {{"resid_pdrop", 0.1}}, "resid_pdrop"},
      {"Phi-4-mini-instruct", {{"lm_head_bias", true}}, "lm_head_bias"},
  };
  for (const auto& [name, fields, part] : cases)
    EXPECT_NE(refusal(name, fields).find(part), std::string::npos)
        << refusal(name, fields) << "\n(" << fields << ")";
}

TEST(RealConfigs, ThePartForTextsIsAModelOfItsOwn) {
  const auto* gemma = std::ranges::find_if(kConfigs, [](const RealConfig& config) {
    return std::string_view(config.name) == "gemma-3-4b-it";
  });
  const HfConfig config = HfConfig::parse("{" + std::string(gemma->text) + "}", "config.json");
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.architectures, std::vector<std::string>{"Gemma3ForCausalLM"});
  EXPECT_EQ(config.json().at("eos_token_id"), nlohmann::json({1, 106}));
  EXPECT_FALSE(config.json().contains("vision_config"));
  const ModelTable model = make_table(config.fields(), {.head = kLm});
  const HfEntry& word = model.hf_names.front();
  EXPECT_EQ(word.hf_name, "model.embed_tokens.weight");
  EXPECT_NE(std::ranges::find(word.also_named, "language_model.model.embed_tokens.weight"),
            word.also_named.end());
}

}  // namespace
}  // namespace ferry
