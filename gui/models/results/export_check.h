#pragma once
// The place that an export is to be written to: looked at before it begins, and tidied where it is
// cancelled.

#include <QString>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gui/models/results/model_form.h"

namespace ferry::gui {

/** The form that `ferry export` writes. */
struct ExportForm {
  bool is_gguf = false;            ///< one file for llama.cpp, else a Hugging Face directory
  std::string gguf_type = "auto";  ///< as --gguf-type takes it
};

struct ExportCheck {
  int64_t needed_bytes = 0;                        ///< of the model; 0: not known
  int64_t free_bytes = -1;                         ///< -1: nobody tells
  ModelForm form;                                  ///< what the model is
  std::vector<std::pair<QString, int64_t>> files;  ///< with their bytes
  QString trouble;  ///< why it cannot be written there; empty: it can
};

/** The lines of Python that load a directory with transformers. */
QString loading_lines(const ModelForm& form, const std::filesystem::path& target);
/** The commands that load a GGUF file with llama.cpp and Ollama. */
QString gguf_loading_lines(const std::filesystem::path& target);

/** `model` is what --model takes. For a thread: a disk may be slow. */
ExportCheck check_export(const std::filesystem::path& model,
                         const std::filesystem::path& target,
                         const ExportForm& wanted = {});

struct Written {
  int64_t n_bytes = 0, n_files = 0;
};
/** A file, or the files right in a directory. */
Written written_in(const std::filesystem::path& path);

/** The place where the program fills the target before it is in its place. */
std::filesystem::path partial_of(const std::filesystem::path& target);
/** Removes what a killed export left beside its target, and waits for a process that may be about
 * to write its last file. For a thread. */
void remove_partial(const std::filesystem::path& target);

}  // namespace ferry::gui
