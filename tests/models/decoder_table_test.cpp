// The decoders' tensor tables: known parameter counts, names, what grouped heads declare.

#include "models/decoder/decoder_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "models/ops/scratch_sizes.h"

namespace ferry {
namespace {

DecoderConfig gpt2(int64_t width, int64_t layers, int64_t heads, int64_t positions) {
  return {.family = DecoderFamily::gpt2,
          .vocab_size = 50257,
          .hidden_size = width,
          .num_hidden_layers = layers,
          .num_attention_heads = heads,
          .num_key_value_heads = heads,
          .intermediate_size = 4 * width,
          .max_position_embeddings = positions};
}

TEST(DecoderTable, ParameterCountsOfKnownModels) {
  // transformers' own counts: 3.015 G of the shape measured, 124.4 M of gpt2, 1.236 G of Llama 3.2.
  EXPECT_EQ(make_decoder_table(llama_3g(), {}).n_params(), 3'015'355'392);
  EXPECT_EQ(make_decoder_table(gpt2(768, 12, 12, 1024), {}).n_params(), 124'439'808);
  const DecoderConfig llama_1b = {.family = DecoderFamily::llama,
                                  .vocab_size = 128256,
                                  .hidden_size = 2048,
                                  .num_hidden_layers = 16,
                                  .num_attention_heads = 32,
                                  .num_key_value_heads = 8,
                                  .intermediate_size = 8192,
                                  .max_position_embeddings = 131072,
                                  .tie_word_embeddings = true};
  EXPECT_EQ(make_decoder_table(llama_1b, {}).n_params(), 1'235'814'400);
  const int64_t n_13g = make_decoder_table(gpt2_13g(), {}).n_params();
  EXPECT_EQ(n_13g, 50257 * 5120LL + 512 * 5120 + 40 * (12 * 5120LL * 5120 + 13 * 5120) + 2 * 5120);
  EXPECT_NEAR(static_cast<double>(n_13g), 12.84e9, 0.01e9);
}

TEST(DecoderTable, EveryParameterIsNamedWholeAndOnce) {
  DecoderConfig tied = llama_3g();
  tied.tie_word_embeddings = true;
  for (const DecoderConfig& config : {llama_3g(), tied, gpt2(768, 2, 12, 1024)}) {
    const ModelTable model = make_decoder_table(config, {});
    std::set<std::string> names;
    std::map<std::pair<int, int>, int64_t> rows;
    for (const HfEntry& entry : model.hf_names) {
      EXPECT_TRUE(names.insert(entry.hf_name).second) << entry.hf_name;
      for (const std::string& other : entry.also_named)
        EXPECT_TRUE(names.insert(other).second) << other;
      EXPECT_EQ(entry.row_begin, (rows[{entry.block, entry.param}])) << entry.hf_name;
      rows[{entry.block, entry.param}] += entry.rows;
      std::vector<int64_t> shape = model.param_of(entry).shape;
      shape[0] = entry.rows;
      if (entry.transposed) std::swap(shape[0], shape[1]);
      EXPECT_EQ(entry.hf_shape, shape) << entry.hf_name;
    }
    for (size_t b = 0; b < model.blocks.size(); b++) {
      const BlockTable& block = model.blocks[b];
      for (size_t i = 0; i < block.params.size(); i++)
        EXPECT_EQ((rows[{static_cast<int>(b), static_cast<int>(i)}]), block.params[i].shape[0])
            << block.name << " " << block.params[i].name;
    }
    EXPECT_EQ(model.blocks.back().borrowed.size(), names.contains("lm_head.weight") ? 0u : 1u);
  }
}

DecoderConfig llama_8b() {
  return {.family = DecoderFamily::llama,
          .vocab_size = 128256,
          .hidden_size = 4096,
          .num_hidden_layers = 32,
          .num_attention_heads = 32,
          .num_key_value_heads = 8,
          .intermediate_size = 14336,
          .max_position_embeddings = 8192};
}

TEST(DecoderTable, LargeTablesOfWordsAreCut) {
  for (const bool is_tied : {false, true}) {
    DecoderConfig config = llama_8b();
    config.tie_word_embeddings = is_tied;
    const ModelTable model = make_decoder_table(config, {.compute = DType::bf16});
    EXPECT_EQ(model.n_params(), is_tied ? 7'504'924'672 : 8'030'261'248);
    std::vector<std::string> names, expected;
    for (const BlockTable& block : model.blocks)
      names.push_back(block.name);
    const auto add_pieces = [&](const std::string& of) {
      for (int i = 0; i < 8; ++i)
        expected.push_back(of + "." + std::to_string(i));
    };
    add_pieces("embeddings");  // nothing comes behind the lookups
    for (int i = 0; i < 32; ++i)
      expected.push_back("layer." + std::to_string(i));
    expected.emplace_back("head");
    add_pieces("head");
    EXPECT_EQ(names, expected);
    int64_t words = 0, piece_most = 0;
    for (const BlockTable& block : model.blocks) {
      if (!block.piece || block.kind != BlockKind::embeddings) continue;
      const std::vector<int64_t>& shape = block.params[0].shape;
      EXPECT_TRUE(shape[0] % ops::kVocabChunk == 0 || block.piece->is_last());
      words += shape[0];
      piece_most = std::max(piece_most, block.n_segment_elements);
    }
    EXPECT_EQ(words, 128256);
    // Two slots of weights and two of gradients in bf16 take half of a GiB.
    EXPECT_EQ(piece_most, 64 << 20);
  }
}

TEST(DecoderTable, TablesOfWordsThatAreNotLargerThanALayerStayWhole) {
  for (const DecoderConfig& config : {llama_3g(), gpt2_13g(), gpt2(1024, 24, 16, 1024)})
    for (const BlockTable& block : make_decoder_table(config, {}).blocks)
      EXPECT_FALSE(block.piece) << block.name;
}

/** Where randomness does not depend on it either. */
TEST(DecoderTable, PiecesDrawAsTheWhole) {
  const DecoderConfig config = gpt2(64, 2, 4, 32);
  const ModelTable whole = make_decoder_table(config, {}),
                   cut = make_decoder_table(config, {.piece_elements_max = 1});
  for (const BlockTable& block : cut.blocks) {
    const std::string of =
        block.piece ? std::string(name_of(block.kind)) : block.name;  // "head.3" is of "head"
    const auto found = std::ranges::find(whole.blocks, of, &BlockTable::name);
    EXPECT_EQ(block.random_block, found - whole.blocks.begin()) << block.name;
  }
}

TEST(DecoderTable, NormsAndBiasesDoNotDecay) {
  for (const DecoderConfig& config : {llama_3g(), gpt2(768, 2, 12, 1024)}) {
    for (const BlockTable& block : make_decoder_table(config, {}).blocks) {
      for (const ParamSpec& param : block.params) {
        EXPECT_EQ(param.decay, param.shape.size() == 2) << block.name << " " << param.name;
        const bool is_norm_weight = param.name.ends_with("norm.weight");
        EXPECT_EQ(param.init == Init::ones, is_norm_weight) << param.name;
      }
    }
  }
}

TEST(DecoderTable, CausalAttentionIsHalfTheWorkAndATileOnTheDiagonal) {
  const ModelTable model = make_decoder_table(llama_3g(), {});
  const BatchShape shape = {.tokens = 8192, .n_seqs_max = 8, .max_length = 1024};
  const BlockWork work = model.blocks[1].work(shape, false);
  EXPECT_EQ(work.attention_flops(false), 2.0 * (1 + 128.0 / 1024) * 8192 * 1024 * 3072);
  EXPECT_EQ(work.attention_flops(true), 2.5 * work.attention_flops(false));
  const BatchShape within_a_tile = {.tokens = 8192, .n_seqs_max = 128, .max_length = 64};
  EXPECT_EQ(model.blocks[1].work(within_a_tile, false).attention_flops(false),
            4.0 * 8192 * 64 * 3072);
  double flops = 0;
  for (const BlockWork::Product& product : work.products)
    flops += product.flops();
  EXPECT_EQ(flops, 2.0 * 8192 * static_cast<double>(model.blocks[1].n_params() - 2 * 3072));
}

TEST(ScratchSizes, GroupedHeadsOfFlashMakeTheirGradientsForEachQuery) {
  const BatchShape shape = {.tokens = 4096, .n_seqs_max = 4, .max_length = 1024};
  const auto bytes = [&](int64_t kv_heads) {
    return ops::attention_scratch(AttentionBackend::flash, DType::bf16, shape, {24, kv_heads, 128},
                                  132)
        .library_bytes;
  };
  const int64_t row_bytes = 4096 * 128 * 2;
  EXPECT_EQ(bytes(8), bytes(24) - 2 * (24 - 8) * row_bytes + 2 * 24 * row_bytes);
}

TEST(ScratchSizes, GroupedHeadsAreRepeatedForTheMemoryEfficientBackend) {
  const BatchShape shape = {.tokens = 1024, .n_seqs_max = 4, .max_length = 512};
  const auto need = [&](int64_t kv_heads) {
    return ops::attention_scratch(AttentionBackend::memory_efficient, DType::f16, shape,
                                  {24, kv_heads, 64}, 68);
  };
  const int64_t repeated = 2 * 1024 * 24 * 64 * 2;
  EXPECT_EQ(need(24).forward_bytes, 0);
  EXPECT_EQ(need(8).forward_bytes, repeated);
  EXPECT_EQ(need(8).backward_bytes, repeated);
}

}  // namespace
}  // namespace ferry
