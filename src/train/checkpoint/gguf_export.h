#pragma once
// `ferry export --format gguf`: a trained model as one file for llama.cpp and the programs that
// stand on it, read back and compared with the model before it has its name.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/dtype.h"
#include "src/files/gguf/gguf_types.h"
#include "src/files/hf/hf_directory.h"

namespace ferry {

/** `type`: of the matrices; without one a checkpoint takes the type that its run computes in, and
 * other models keep the type of their weights. `directories`: of drives, as export_model() has
 * them.
 *
 * Writes the model in `from` (a directory, a run's checkpoint, or an adapter, which is merged) to
 * the new file `to`. Takes some megabytes of memory; an adapter, and a checkpoint whose states lie
 * on a drive, take the disk of the model in fp32 beside `to` meanwhile. `check` gets a directory by
 * which the file is read as a model, before the file has its name. Nothing is left at `to` when
 * anything fails. Throws Error(data) where llama.cpp would compute another model, or where the
 * tokenizer is none of its kinds. */
void export_gguf(const std::filesystem::path& from,
                 const std::filesystem::path& to,
                 std::optional<GgufType> type = {},
                 const std::vector<std::filesystem::path>& directories = {},
                 const std::function<void(const std::filesystem::path& written)>& check = {});

/** The type that the options ask for; nothing leaves it to export_gguf(). `name`: the value of
 * gguf_type. */
std::optional<GgufType> gguf_type_asked(std::string_view name, std::optional<DType> dtype);

/** Writes the model to the file, which appears unchecked. `name`: general.name. */
void write_gguf(const HfDirectory& model,
                const CheckpointReader& weights,
                GgufType type,
                const std::string& name,
                const std::filesystem::path& to);

/** Opens a file that was written of the model, and compares every key and every value of every
 * tensor with it: bit for bit in F32, else within the rounding of the type. Throws Error(machine)
 * that names the key or the tensor. */
void check_gguf(const HfDirectory& model,
                const CheckpointReader& weights,
                GgufType type,
                const std::string& name,
                const std::filesystem::path& file);

}  // namespace ferry
