#pragma once
// A GGUF file as a Hugging Face model directory: configuration and tokenizer written out, and a
// link to the file for the weights. The directory lies in Ferry's cache, a few megabytes a model;
// everything that takes a model directory takes it. config::find_model() calls this where a user
// names a GGUF file.

#include <filesystem>

namespace ferry {

/** The directory of that file, made where it is not there yet. Where
 * `takes_beside`, a tokenizer's files beside the GGUF file go before the one in it. Throws
 * Error(data) where the file is damaged, of a family that Ferry does not read from GGUF, or has no
 * tokenizer that Ferry knows; Error(machine) where the cache cannot be written. */
std::filesystem::path gguf_directory(const std::filesystem::path& file, bool takes_beside = true);

}  // namespace ferry
