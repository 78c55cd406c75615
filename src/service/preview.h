#pragma once
// The texts of a training as the model will see them: rows, tokens with their places, what is
// trained on, what is cut; and the first batch. For `ferry preview` and the app. No torch, no
// device.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"
#include "src/data/example.h"
#include "src/inputs/preflight.h"
#include "src/service/tell.h"

namespace ferry::service {

struct PreviewToken {
  int32_t id = 0;
  std::string piece;  ///< as the vocabulary has it: "##ing"
  /** The text that it is a part of, 0 or 1; -1: a special token, or nobody knows. */
  int text = -1;
  TextRange bytes;          ///< in that text; of a text that came in words those of the whole word
  bool is_trained = false;  ///< the loss asks for it
  std::string target;  ///< the answer that is wanted here, where it is not the token itself: a tag,
                       ///< the token that was hidden
};

/** A sequence as the model reads it. */
struct PreviewSample {
  int64_t example = 0;  ///< place in the data, from 0
  int64_t part = 0;     ///< of the example's sequences, from 0
  int64_t n_parts = 1;
  std::string part_name;  ///< "the chosen answer"; empty: it is a part of a text
  /** The row as it was read: "text", "label", ... */
  std::vector<std::pair<std::string, std::string>> fields;
  /** The texts that the tokenizer was given; text_pair may be empty. A chat has the text that its
   * template makes, as its tokens spell it. */
  std::string text, text_pair;
  std::vector<PreviewToken> tokens;
  std::string answer;       ///< the label of the whole text: "business", "3.5"; empty: none
  bool has_answer = false;  ///< the answer is trained on
  bool is_truncated = false;
  bool is_chat = false;      ///< the field "chat" is a conversation (src/chat/conversation.h)
  bool is_held_out = false;  ///< for evaluation; known once all of the data were counted

  int64_t n_trained() const;
  bool is_trained_on() const { return has_answer || n_trained() > 0; }
};

/** Sequences by their number of tokens: bin i has those of (i * width, (i + 1) * width]. */
struct LengthBins {
  int64_t width = 1;
  std::vector<int64_t> counts;
};

struct PreviewNumbers {
  int64_t n_sequences = 0;
  int64_t n_tokens = 0;
  int64_t n_longest = 0;
  /** The least number of tokens that 95 and 99 of 100 sequences do not exceed. */
  int64_t n_tokens_95 = 0, n_tokens_99 = 0;
  int64_t n_truncated = 0;
  /** Number of sequences without anything to learn; nullopt where that is drawn anew in each step.
   */
  std::optional<int64_t> n_untrained;
  LengthBins lengths;
  /** Of each of Preview::labels: texts that have it, or words where words are tagged. Empty where
   * there are no labels, or not all of the data were counted. */
  std::vector<int64_t> label_counts;
};

/** A row of the first batch. Its tokens have no places in a text. */
struct PreviewBatchRow {
  int64_t sequence_id = 0;  ///< place among the sequences that are trained on
  int64_t micro_batch = 0;  ///< of the step, from 0
  PreviewSample sequence;
};

/** The first step's samples, in the order in which they are taken. */
struct PreviewBatch {
  std::vector<PreviewBatchRow> rows;
  int64_t n_samples = 0, n_tokens = 0, n_trained_tokens = 0;
  bool is_shortened = false;  ///< there are more rows than are kept
};

struct Preview {
  std::string task;
  std::string tokenizer;  ///< the directory that it is of
  int64_t max_length = 0;
  std::vector<std::string> labels;  ///< of the head, in the order of its outputs
  std::vector<std::string> notes;   ///< what was taken for what
  std::vector<PreviewSample> samples;
  PreviewNumbers numbers;  ///< of the samples, or of all sequences that are trained on
  bool is_of_all = false;
  /** The faults that a training names before its first step; where all of the data were counted. */
  std::vector<PreflightFinding> findings;
  std::optional<PreviewBatch> first_batch;  ///< where all of the data were counted
};

struct PreviewQuestion {
  int64_t n_samples = 50;  ///< at most, from the beginning of the data
  /** Tokenizes all of the data, or finds their tokens where they are kept, as a training does. */
  bool counts_all = true;
  Tell tell = {};
};

/** The preview of a training with these settings. Reads the labels of all rows, as a training does;
 * without counts_all no more texts than are shown. Throws Error for what is wrong with settings,
 * tokenizer or data. */
Preview preview(const config::Config& config, const PreviewQuestion& question = {});

/** The part of its text that the token stands for; its piece where that is not known. */
std::string shown_text(const PreviewSample& sample, const PreviewToken& token);

}  // namespace ferry::service
