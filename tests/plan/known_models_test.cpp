// Shapes of models that a plan knows by their names: the numbers of parameters that follow from
// them are those that their makers publish.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "models/family.h"
#include "src/config/models/known_models.h"
#include "src/files/hf/hf_config.h"

namespace ferry {
namespace {

/** As safetensors and model cards have them, without a head of their own: of decoders with the
 * language model's head, of encoders with one for two labels. Tied tensors count once. */
const std::map<std::string, int64_t> kPublished = {
    {"sentence-transformers/all-MiniLM-L6-v2", 22'713'986},
    {"sentence-transformers/all-MiniLM-L12-v2", 33'360'770},
    {"google-bert/bert-base-cased", 108'311'810},
    {"google-bert/bert-base-uncased", 109'483'778},
    {"google-bert/bert-large-cased", 333'581'314},
    {"google-bert/bert-large-uncased", 335'143'938},
    {"distilbert/distilbert-base-uncased", 66'955'010},
    {"FacebookAI/roberta-base", 124'647'170},
    {"FacebookAI/roberta-large", 355'361'794},
    {"FacebookAI/xlm-roberta-base", 278'045'186},
    {"FacebookAI/xlm-roberta-large", 559'892'482},
    {"openai-community/gpt2", 124'439'808},
    {"openai-community/gpt2-medium", 354'823'168},
    {"openai-community/gpt2-large", 774'030'080},
    {"openai-community/gpt2-xl", 1'557'611'200},
    {"facebook/opt-125m", 125'239'296},
    {"facebook/opt-350m", 331'196'416},
    {"facebook/opt-1.3b", 1'315'758'080},
    {"EleutherAI/pythia-410m", 405'334'016},
    {"EleutherAI/pythia-1.4b", 1'414'647'808},
    {"EleutherAI/gpt-j-6b", 6'050'882'784},
    {"HuggingFaceTB/SmolLM2-135M", 134'515'008},
    {"HuggingFaceTB/SmolLM2-1.7B", 1'711'376'384},
    {"TinyLlama/TinyLlama_v1.1", 1'100'048'384},
    {"meta-llama/Llama-2-7b-hf", 6'738'415'616},
    {"meta-llama/Meta-Llama-3-8B", 8'030'261'248},
    {"meta-llama/Llama-3.2-1B", 1'235'814'400},
    {"meta-llama/Llama-3.2-3B", 3'212'749'824},
    {"mistralai/Mistral-7B-v0.1", 7'241'732'096},
    {"mistralai/Mistral-7B-v0.3", 7'248'023'552},
    {"Qwen/Qwen2.5-0.5B", 494'032'768},
    {"Qwen/Qwen2.5-7B", 7'615'616'512},
    {"Qwen/Qwen3-0.6B", 596'049'920},
    {"Qwen/Qwen3-8B", 8'190'735'360},
    {"google/gemma-2b", 2'506'172'416},
    {"google/gemma-2-2b", 2'614'341'888},
    {"google/gemma-2-9b", 9'241'705'984},
    {"microsoft/Phi-3-mini-4k-instruct", 3'821'079'552},
    {"meta-llama/Llama-2-13b-hf", 13'015'864'320},
    {"meta-llama/Meta-Llama-3-70B", 70'553'706'496},
    {"HuggingFaceTB/SmolLM2-360M", 361'821'120},
    {"mistralai/Mistral-Nemo-Base-2407", 12'247'782'400},
    {"Qwen/Qwen2.5-1.5B", 1'543'714'304},
    {"Qwen/Qwen2.5-3B", 3'085'938'688},
    {"Qwen/Qwen2.5-14B", 14'770'033'664},
    {"Qwen/Qwen2.5-32B", 32'763'876'352},
    {"Qwen/Qwen2.5-72B", 72'706'203'648},
    {"Qwen/Qwen3-1.7B", 1'720'574'976},
    {"Qwen/Qwen3-4B", 4'022'468'096},
    {"Qwen/Qwen3-14B", 14'768'307'200},
    {"Qwen/Qwen3-32B", 32'762'123'264},
    {"google/gemma-7b", 8'537'680'896},
    {"google/gemma-2-27b", 27'227'128'320},
    {"google/gemma-3-1b-pt", 999'885'952},
    {"google/gemma-3-270m", 268'098'176},
    {"microsoft/Phi-3-medium-4k-instruct", 13'960'238'080},
    {"microsoft/phi-4", 14'659'507'200},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1'777'088'000},
    {"gpt3-175b", 174'604'259'328},
    {"t5-11b-size", 11'310'973'952},
    {"distilbert/distilgpt2", 81'912'576}};

TEST(KnownModels, HaveTheParametersThatArePublished) {
  std::map<std::string, int64_t> counted;  // by configuration
  for (const config::KnownModel& model : config::known_models()) {
    const HfConfig config = HfConfig::parse(model.config, model.id);
    const Family& family = family_of(config.fields());
    const bool is_decoder = std::ranges::count(family.heads, HeadKind::causal_lm) > 0;
    const ModelTable table = make_table(
        config.fields(),
        {.head = is_decoder ? HeadKind::causal_lm : HeadKind::classification, .n_labels = 2});
    const auto published = kPublished.find(model.id);
    if (published != kPublished.end()) {
      EXPECT_EQ(table.n_params(), published->second) << model.id;
    } else {  // a sister of one that stands above it
      const bool is_known = std::ranges::any_of(
          kPublished, [&](const auto& one) { return one.second == table.n_params(); });
      EXPECT_TRUE(is_known) << model.id << ": " << table.n_params();
    }
  }
}

}  // namespace
}  // namespace ferry
