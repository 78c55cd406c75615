#pragma once
// The tensors of a GGUF file under the names and in the order of rows that Hugging Face's files
// have: what llama.cpp's converter changes is changed back. CheckpointReader opens a model
// through it.

#include <deque>

#include "src/files/gguf/gguf.h"
#include "src/files/safetensors/safetensors.h"

namespace ferry {

/** The architecture's name, "llama". Throws Error(data) where the file has none that Ferry reads.
 */
std::string gguf_architecture(const GgufFile& file);

/** All tensors that are a model's; those that hold what its configuration says are left out.
 * `file` outlives them. Throws Error(data) that names a tensor which has no place. */
std::deque<StoredTensor> gguf_tensors(const GgufFile& file);

/** The name of a GGUF type as a storage of frozen matrices; empty where there is none. */
std::string_view gguf_storage(GgufType type);

}  // namespace ferry
