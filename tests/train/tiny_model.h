#pragma once
// A BERT and a LLaMA of a few thousand parameters with a vocabulary of words, written as Hugging
// Face directories, and data that they can learn: for tests of the whole program.

#include <filesystem>

namespace ferry::test {

void write_tiny_model(const std::filesystem::path& directory);
/** The same with LLaMA's layers and a head of its own for the vocabulary. */
void write_tiny_decoder(const std::filesystem::path& directory);
/** A LLaMA that goes on with texts: words with no special tokens around them, grouped heads, tied
 * words, dropout in attention, a context of 64 tokens. */
void write_tiny_language_model(const std::filesystem::path& directory);
/** The same with a chat template: "[BOS] QUESTION [EOS]is ANSWER [EOS]", a system prompt before. */
void write_tiny_chat_model(const std::filesystem::path& directory);
/** n rows "text<TAB>label": the label is the colour that the text names. */
void write_tiny_data(const std::filesystem::path& file, int n, unsigned seed);
/** n rows "text<TAB>score", a number with a fraction: a regression. */
void write_tiny_scores(const std::filesystem::path& file, int n, unsigned seed);
/** n JSON rows {"text", "label"}: a list of the colours that the text names. */
void write_tiny_label_lists(const std::filesystem::path& file, int n, unsigned seed);
/** n JSON rows {"tokens", "ner_tags"}: colours are entities, with "car" behind them of two words.
 */
void write_tiny_tags(const std::filesystem::path& file, int n, unsigned seed);
/** n JSON rows in the form of SQuAD: the colour in the context answers the question, and some have
 * no answer. */
void write_tiny_questions(const std::filesystem::path& file, int n, unsigned seed);
/** n JSON rows {"text"}: documents that a decoder can learn, for the words of each come in one
 * order. */
void write_tiny_documents(const std::filesystem::path& file, int n, unsigned seed);

}  // namespace ferry::test
