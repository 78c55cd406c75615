#pragma once
// The frequencies of rotary positions, with the scalings that stretch a model over more positions
// than it was trained on; as Hugging Face's configurations describe them. Torch-free.

#include <cstdint>
#include <vector>

namespace ferry {

/** Hugging Face's rope_type. */
enum class RopeScaling : uint8_t {
  none,      ///< "default" (Su et al. 2021)
  linear,    ///< positions are divided by the factor (Chen et al. 2023)
  dynamic,   ///< theta grows with the length (NTK-aware)
  yarn,      ///< low frequencies are divided, high ones stay (Peng et al. 2023)
  longrope,  ///< a divisor for each frequency (Ding et al. 2024)
  llama3,    ///< as yarn, between two wavelengths (Llama 3.1)
};

struct RopeSpec {
  RopeScaling scaling = RopeScaling::none;
  double theta = 10000;
  int64_t width = 0;  ///< columns of a head that are turned, even
  /** Every scaling but the default has one; 0 of yarn and longrope: max_positions /
   * original_positions. */
  double factor = 0;
  int64_t max_positions = 0;       ///< max_position_embeddings, of dynamic, yarn and longrope
  int64_t original_positions = 0;  ///< of yarn, longrope and llama3
  /** The factor of cosines and sines, of yarn and longrope; 0: from the factor, as their papers
   * say. */
  double attention_factor = 0;
  double low_frequency_factor = 1, high_frequency_factor = 4;  ///< of llama3
  double beta_fast = 32, beta_slow = 1;                        ///< of yarn
  double mscale = 0, mscale_all_dim = 0;                       ///< of yarn; 0: not there
  bool truncate = true;                                        ///< of yarn
  std::vector<double> short_factor, long_factor;               ///< of longrope, width / 2 each
};

/** A pair i is turned by position * frequencies[i]; cosines and sines are multiplied by factor. */
struct RopeTable {
  std::vector<float> frequencies;  ///< width / 2
  /** Those of batches with a sequence of more than `long_from` tokens, whose positions have
   * kLongPosition (models/core/long_position.h); empty: they are the same. */
  std::vector<float> long_frequencies;
  int64_t long_from = 0;
  float factor = 1;
};

/** The frequencies of a specification. Transformers chooses those of dynamic and longrope for each
 * batch by its longest sequence. The frequencies of dynamic differ beyond max_positions alone,
 * where no run's sequences reach. */
RopeTable rope_table(const RopeSpec& spec);

/** The fault of the specification, for a message; null: nothing. rope_table() checks it. */
const char* refused_rope(const RopeSpec& spec);

}  // namespace ferry
