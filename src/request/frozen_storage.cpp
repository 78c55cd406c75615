#include "src/request/frozen_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "models/core/compile.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** The tensors that are rows of a parameter, in their order. */
std::vector<const HfEntry*> entries_of(const ModelTable& model, int block, int param) {
  std::vector<const HfEntry*> entries;
  for (const HfEntry& entry : model.hf_names)
    if (entry.block == block && entry.param == param && !entry.is_delta) entries.push_back(&entry);
  std::ranges::sort(entries, {}, &HfEntry::row_begin);
  return entries;
}

/** The storage of a matrix by the settings: one for all its tensors, or each tensor's storage in
 * the files. */
std::optional<MatrixStorage> storage_of(const ModelTable& model,
                                        int block,
                                        int param,
                                        std::optional<Storage> wanted) {
  std::vector<RowStorage> parts;
  for (const HfEntry* entry : entries_of(model, block, param)) {
    const Storage its = wanted.value_or(entry->in_files);
    if (!is_quantised(its)) return std::nullopt;
    parts.push_back({its, entry->rows});
  }
  if (parts.empty()) return std::nullopt;
  return MatrixStorage(std::move(parts));
}

/** Empty where all are in the type of compute, unless they should be `is_stored`. */
std::string storage_note(const ModelTable& model, bool is_stored) {
  std::map<std::string, int> counts;
  int n_compute = 0;
  int64_t n_bytes = 0, n_values = 0;
  for (const BlockTable& block : model.blocks) {
    if (block.kind != BlockKind::layer) continue;
    for (const ParamSpec& param : block.params) {
      if (param.trainable || param.shape.size() != 2) continue;
      if (!param.storage.is_quantised()) {
        ++n_compute;
        continue;
      }
      ++counts[param.storage.name()];
      n_bytes += param.stored(model.compute).back().end;
      n_values += param.n_values();
    }
  }
  if (counts.empty())
    return is_stored ? fmt::format(
                           "no matrix of the layers is stored in a form that a run can "
                           "keep: all are in {}",
                           name_of(model.compute))
                     : std::string();
  std::string text;
  for (const auto& [name, n] : counts)
    text += fmt::format("{}{} as {}", text.empty() ? "" : ", ", n, name);
  if (n_compute > 0) text += fmt::format(", {} in {}", n_compute, name_of(model.compute));
  return fmt::format("frozen matrices of the layers: {}; the quantised ones take {} in place of {}",
                     text, format_bytes(n_bytes),
                     format_bytes(n_values * static_cast<int64_t>(size_of(model.compute))));
}

}  // namespace

void store_frozen(const config::Config& config, ModelTable& model) {
  const std::string& name = config.text("quantization");
  const bool nests = config.flag("double_quantization");
  if (nests && name != "nf4")
    throw Error(Fault::usage, "config.double_quantization",
                fmt::format("double_quantization ({}) is for quantization = nf4, and that is {}",
                            config.origin("double_quantization").where, name),
                "add --quantization nf4, or leave it out");
  if (name == "none") return;
  std::optional<Storage> wanted;
  if (name == "nf4") wanted = nests ? Storage::nf4_nested : Storage::nf4;
  if (name == "int8") wanted = Storage::int8;
  bool has_any = false;
  for (int b = 0; b < std::ssize(model.blocks); ++b)
    for (int p = 0; p < std::ssize(model.blocks[b].params); ++p) {
      if (model.blocks[b].kind != BlockKind::layer || model.blocks[b].params[p].trainable) continue;
      const auto storage = storage_of(model, b, p, wanted);
      if (!storage || !may_be_stored(model, b, p, *storage)) continue;
      set_storage(model, b, p, *storage);
      has_any = true;
    }
  if (has_any) return;
  const std::string where = config.origin("quantization").where;
  // Files may have blocks in other matrices alone: then a note says so.
  if (!wanted && config.origin("quantization").source != config::Source::command_line) return;
  if (!wanted)
    throw Error(Fault::usage, "config.quantization",
                fmt::format("no matrix of this model is stored in a form that a run can keep ({}): "
                            "files of Q8_0, Q4_0, Q4_1, Q4_K, Q6_K and MXFP4 are",
                            where),
                "leave it out, or write nf4 or int8");
  throw Error(Fault::usage, "config.quantization",
              fmt::format("no matrix of this model can be stored as {} ({}): nf4 wants columns "
                          "that are a multiple of {}, and neither takes trained matrices",
                          name, where, kNf4Values_per_scale),
              "leave it out, or write int8");
}

std::vector<std::string> storage_notes(const config::Config& config,
                                       const HfConfig& files,
                                       const ModelTable& model) {
  std::vector<std::string> notes;
  if (std::string note = storage_note(model, config.text("quantization") == "stored");
      !note.empty())
    notes.push_back(std::move(note));
  if (!files.quantised.empty() && config.text("quantization") == "none")
    notes.push_back(fmt::format(
        "the weights in the files are quantised ({}): the values that they stand for are trained, "
        "in {}",
        files.quantised, name_of(model.compute)));
  return notes;
}

}  // namespace ferry
