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
/** n rows "text<TAB>label": the label is the colour that the text names. */
void write_tiny_data(const std::filesystem::path& file, int n, unsigned seed);

}  // namespace ferry::test
