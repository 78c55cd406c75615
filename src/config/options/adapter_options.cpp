// Training a few parameters in place of all: options of adapters.

#include "src/config/options/option_groups.h"

namespace ferry::config {
namespace {

constexpr std::string_view kAdapterGroup = "Adapters";
constexpr std::string_view kQlora = "write tuning = lora and quantization = nf4";

}  // namespace

std::vector<Option> adapter_options() {
  return {
      {.key = "tuning",
       .label = "Trained parameters",
       .type = Type::choice,
       .group = kAdapterGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "full",
       .choices = {"full", "lora", "bitfit", "soft_prompt", "adapter", "parallel_adapter",
                   "low_rank_adapter", "compacter"},
       .choice_aliases = {{"freeze", "", "name the parameters that stay as they are with freeze"},
                          {"qlora", "", kQlora},
                          {"prompt_tuning", "soft_prompt"},
                          {"oft", "", "lora is the nearest"}},
       .aliases = {{"finetuning_type"},
                   {"use_peft", "lora"},
                   {"use_lora", "lora"},
                   {"adapter"},
                   {"tuning_method"}},
       .help =
           "Parameters that are trained. full: all, or those that freeze leaves. lora: "
           "low-rank matrices beside the linear maps (lora_r, lora_targets), and a new head; "
           "the model itself stays as it is, has no gradients and no states, and the result is "
           "an adapter of some megabytes in PEFT's format. bitfit: the biases alone. soft_prompt: "
           "virtual tokens before each text (num_virtual_tokens). adapter: two small maps behind "
           "each attention and feed-forward (Houlsby); parallel_adapter: "
           "beside them; low_rank_adapter and compacter: with fewer parameters still. Adapters "
           "take much less memory, and learn less where the task is far from what the model "
           "knows."},
      {.key = "lora_r",
       .label = "LoRA rank",
       .type = Type::integer,
       .group = kAdapterGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "16",
       .unit = "columns",
       .range = {1, 4096},
       .aliases = {{"lora_rank"}, {"peft_lora_r"}},
       .help =
           "Rank r of the matrices A (r, in) and B (out, r). A larger one learns more and takes "
           "more memory: 8 to 64 is usual."},
      {.key = "lora_alpha",
       .label = "LoRA alpha",
       .type = Type::number,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .unit = "factor",
       .can_be_auto = true,
       .range = {0, 1e6},
       .aliases = {{"peft_lora_alpha"}},
       .help = "What A and B give is multiplied by alpha / lora_r (use_rslora: by alpha / "
               "sqrt(lora_r)). auto is 2 * lora_r."},
      {.key = "lora_dropout",
       .label = "LoRA dropout",
       .type = Type::number,
       .group = kAdapterGroup,
       .effect = Effect::changes_training,
       .value = "0",
       .unit = "share dropped",
       .special = {"0", "off"},
       .range = {0, 0.999},
       .aliases = {{"peft_lora_dropout"}},
       .help = "Dropout of what A reads. 0.05 is usual where there are few texts."},
      {.key = "use_rslora",
       .label = "Rank-stabilised LoRA",
       .type = Type::boolean,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "false",
       .aliases = {{"lora_use_rslora"}, {"peft_use_rslora"}},
       .help =
           "Divides lora_alpha by the square root of the rank (rsLoRA). Large ranks then learn as "
           "fast as small ones; the learning rate of a run without it may be too large."},
      {.key = "use_dora",
       .label = "Lengths of rows (DoRA)",
       .type = Type::boolean,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "false",
       .aliases = {{"lora_use_dora"}, {"peft_use_dora"}},
       .help =
           "Trains the length of each row of W + s B A, too, apart from its direction (DoRA). A "
           "small rank then learns about what a larger one would. It takes more time and "
           "memory: the norms of all adapted rows are found again in each forward."},
      {.key = "lora_targets",
       .label = "LoRA modules",
       .type = Type::list,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "all-linear",
       .aliases = {{"lora_target_modules"},
                   {"lora_target"},
                   {"target_modules"},
                   {"lora_target_linear", "all-linear"}},
       .help = "Linear maps that get an adapter: the ends of their names, as 'q_proj,v_proj', or "
               "patterns over whole names, as 'model.layers.1?.*'. all-linear (or all): every one "
               "of the layers."},
      {.key = "adapter_size",
       .label = "Adapter size",
       .type = Type::integer,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .unit = "columns",
       .can_be_auto = true,
       .range = {1, 65536},
       .aliases = {{"bottleneck_dim"}, {"bottleneck_size"}},
       .help = "Columns between the two maps of an adapter. auto is what OpenDelta takes: 24 for "
               "adapter and parallel_adapter, of the model's width a 32nd for low_rank_adapter and "
               "a 16th for compacter. A larger one learns more and takes more memory."},
      {.key = "adapter_scale",
       .label = "Adapter scale",
       .type = Type::number,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "1",
       .unit = "factor",
       .range = {-1e6, 1e6},
       .help = "What a parallel adapter gives is multiplied by it. 4 is usual beside feed-forwards "
               "of large models."},
      {.key = "compacter_division",
       .label = "Compacter terms",
       .type = Type::integer,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "4",
       .unit = "terms",
       .range = {1, 64},
       .aliases = {{"hypercomplex_division"}, {"phm_dim"}},
       .help =
           "Terms n of the sums of Kronecker products that the maps of compacter are. It divides "
           "the model's width and adapter_size. More terms mix more, and have n^3 parameters "
           "in each map."},
      {.key = "modules_to_save",
       .label = "Modules trained whole",
       .type = Type::list,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .aliases = {{"additional_target"}, {"lora_modules_to_save"}, {"peft_modules_to_save"}},
       .help = "Modules that are trained whole beside the adapters, and saved with them: the ends "
               "of their names, as 'embed_tokens,lm_head'. A head that the model does not have yet "
               "always is."},
      {.key = "quantization",
       .label = "Bits of frozen weights",
       .type = Type::choice,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "none",
       .choices = {"none", "int8", "nf4", "stored"},
       .choice_aliases = {{"4", "nf4"},
                          {"8", "int8"},
                          {"bnb_4bit", "nf4"},
                          {"bnb_8bit", "int8"},
                          {"gguf", "stored"},
                          {"mxfp4", "stored"},
                          {"fp4", "", "nf4 has as many bits and smaller errors"},
                          {"gptq", "", "int8 and nf4 are there"},
                          {"awq", "", "int8 and nf4 are there"}},
       .aliases = {{"quantization_bit"}, {"load_in_4bit", "nf4"}, {"load_in_8bit", "int8"}},
       .help =
           "Storage of the frozen matrices of the layers while adapters are trained. none: in "
           "the type of compute, which is exact, and streams from host memory where the GPU "
           "has no room. int8 (LLM.int8): half of that; nf4 (QLoRA): a quarter. stored: the "
           "blocks of the model's files (GGUF's Q8_0, Q4_0, Q4_1, Q4_K and Q6_K, and MXFP4), bit "
           "for bit. A model that is quantised already is taken as it is. Fewer bits are for "
           "runs that 16 bits are too slow or too large for: the model that is adapted is then "
           "off by what quantisation loses, and the adapter learns to make up for it."},
      {.key = "double_quantization",
       .label = "Scales of nf4 in fewer bits",
       .type = Type::boolean,
       .group = kAdapterGroup,
       .effect = Effect::fixes_bits,
       .value = "false",
       .aliases = {{"bnb_4bit_use_double_quant"}, {"use_bnb_nested_quant"}},
       .help = "Quantises the scales of quantization = nf4, too (QLoRA's double quantisation): a "
               "byte a scale, and so 4.13 bits a weight in place of 4.5. Values are then off by a "
               "little more."},
      {.key = "loraplus_lr_ratio",
       .label = "LoRA+ ratio",
       .type = Type::number,
       .group = kAdapterGroup,
       .effect = Effect::changes_training,
       .value = "1",
       .unit = "times the learning rate",
       .special = {"1", "off"},
       .range = {0.01, 1000},
       .aliases = {{"lora_plus_ratio"}},
       .help = "Learning rate of B as a multiple of A's (LoRA+); 16 is what its authors use."},
  };
}

}  // namespace ferry::config
