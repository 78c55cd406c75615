#include "gui/models/results/export_check.h"

#include <unistd.h>

#include <QCoreApplication>
#include <algorithm>
#include <chrono>
#include <thread>

#include "gui/models/process/ferry_command.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "models/family.h"
#include "src/config/models/models.h"
#include "src/files/gguf/gguf_types.h"
#include "src/files/hf/hf_config.h"
#include "src/request/disk.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

struct ExportWords {
  Q_DECLARE_TR_FUNCTIONS(ExportWords)
};

/** The first directory above that is there. */
fs::path nearest_directory(fs::path path) {
  std::error_code error;
  while (!path.empty() && !fs::exists(path, error) && path.has_relative_path())
    path = path.parent_path();
  return path;
}

/** The files of a model's directory; what a run keeps there for itself is not exported. */
std::vector<std::pair<QString, int64_t>> model_files(const fs::path& model) {
  std::vector<std::pair<QString, int64_t>> files;
  std::error_code error;
  for (fs::directory_iterator it(model, error), end; !error && it != end; it.increment(error)) {
    std::error_code of_entry;
    const std::string name = it->path().filename().string();
    if (!it->is_regular_file(of_entry) || name == "trainer_state.json" || name == "COMPLETE")
      continue;
    files.emplace_back(path_text(it->path().filename()),
                       static_cast<int64_t>(it->file_size(of_entry)));
  }
  std::sort(files.begin(), files.end());
  return files;
}

constexpr const char* kGgufEnding = ".gguf";

/** The weights that a killed export of a GGUF file gathered beside it. */
fs::path gathered_of(const fs::path& target) {
  return target.string() + ".weights.partial";
}

/** Why a GGUF file cannot get this name; empty: it can. */
QString trouble_of_file(const fs::path& target) {
  if (target.empty()) return ExportWords::tr("Choose a file to write.");
  if (!target.is_absolute()) return ExportWords::tr("Give the whole path of the file, from / on.");
  if (target.extension() != kGgufEnding)
    return ExportWords::tr("Give the file a name that ends in %1.")
        .arg(QString::fromLatin1(kGgufEnding));
  std::error_code error;
  if (fs::exists(target, error))
    return ExportWords::tr("It is there already. Nothing is overwritten: choose a new file.");
  return {};
}

/** Likewise of a directory that is new or empty. */
QString trouble_of_folder(const fs::path& target, const fs::path& model) {
  if (target.empty()) return ExportWords::tr("Choose a folder to write to.");
  if (!target.is_absolute())
    return ExportWords::tr("Give the whole path of the folder, from / on.");
  if (target.extension() == kGgufEnding)
    return ExportWords::tr("This is the name of a GGUF file. Choose a folder to write to.");
  std::error_code error;
  if (fs::exists(target, error)) {
    if (!fs::is_directory(target, error))
      return ExportWords::tr(
          "A file is there already. Nothing is overwritten: choose a new folder.");
    if (fs::equivalent(target, model, error))
      return ExportWords::tr("The model itself is there. Choose a new folder.");
    if (!fs::is_empty(target, error) || error)
      return ExportWords::tr(
          "The folder is there and not empty. Nothing is overwritten: choose a new folder.");
  }
  return {};
}

QString trouble_of_target(const fs::path& target, const fs::path& model, bool is_gguf) {
  if (QString trouble = is_gguf ? trouble_of_file(target) : trouble_of_folder(target, model);
      !trouble.isEmpty())
    return trouble;
  std::error_code error;
  for (const fs::path& left : {partial_of(target), gathered_of(target)})
    if (fs::exists(left, error))
      return ExportWords::tr(
                 "%1 is left of an export that was interrupted. Remove it, or choose "
                 "another name.")
          .arg(shown_path(left));
  const fs::path above = nearest_directory(target.parent_path());
  if (!fs::is_directory(above, error))
    return ExportWords::tr("%1 is no folder.").arg(shown_path(above));
  if (access(above.c_str(), W_OK | X_OK) != 0)
    return ExportWords::tr("Nothing may be written to %1.").arg(shown_path(above));
  return {};
}

/** Bytes of a GGUF file, without its tokens. 0: not known. */
int64_t gguf_bytes(const HfConfig& config, std::string_view type_name) {
  for (const GgufType type : {GgufType::f32, GgufType::f16, GgufType::bf16, GgufType::q8_0})
    if (to_text(name_of(type)).toLower() == to_text(type_name)) {
      const int64_t n = make_table(config.fields(), {.head = HeadKind::causal_lm}).n_params();
      return (n + block_elements(type) - 1) / block_elements(type) * block_bytes(type);
    }
  return 0;
}

}  // namespace

QString loading_lines(const ModelForm& form, const fs::path& target) {
  const char* const kind = form.kind == FormKind::classification ? "SequenceClassification"
                           : form.kind == FormKind::tokens       ? "TokenClassification"
                           : form.kind == FormKind::question     ? "QuestionAnswering"
                           : form.kind == FormKind::generation   ? "CausalLM"
                                                                 : "MaskedLM";
  // A path in Python's quotes.
  QString path = path_text(target);
  path.replace('\\', QStringLiteral("\\\\")).replace('"', QStringLiteral("\\\""));
  return QStringLiteral(
             "from transformers import AutoModelFor%1, AutoTokenizer\n"
             "folder = \"%2\"\n"
             "tokenizer = AutoTokenizer.from_pretrained(folder)\n"
             "model = AutoModelFor%1.from_pretrained(folder)")
      .arg(QString::fromLatin1(kind), path);
}

QString gguf_loading_lines(const fs::path& target) {
  const QString path = path_text(target);
  return shell_text("llama-cli", {"-m", path}) + '\n' + shell_text("echo", {"FROM " + path}) +
         " > Modelfile\n" +
         shell_text("ollama", {"create", path_text(target.stem()), "-f", "Modelfile"});
}

fs::path partial_of(const fs::path& target) {
  const fs::path named = target.has_filename() ? target : target.parent_path();
  return named.string() + ".partial";
}

void remove_partial(const fs::path& target) {
  constexpr int kTries = 20;
  std::error_code error;
  // The name under which a GGUF file is written before it is the partial file.
  const std::string hidden = '.' + partial_of(target).filename().string() + ".tmp-";
  const auto paths = [&] {
    std::vector<fs::path> left;
    for (const fs::path& path : {partial_of(target), gathered_of(target)})
      if (fs::exists(path, error)) left.push_back(path);
    for (fs::directory_iterator it(target.parent_path(), error), end; !error && it != end;
         it.increment(error))
      if (it->path().filename().string().starts_with(hidden)) left.push_back(it->path());
    return left;
  };
  for (int n = 0; n < kTries; ++n) {
    if (n > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto left = paths();
    if (n > 0 && left.empty()) return;
    for (const fs::path& path : left)
      fs::remove_all(path, error);
  }
}

Written written_in(const fs::path& path) {
  Written written;
  std::error_code error;
  if (fs::is_regular_file(path, error))
    return {.n_bytes = static_cast<int64_t>(fs::file_size(path, error)), .n_files = 1};
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code of_entry;
    if (!it->is_regular_file(of_entry)) continue;
    ++written.n_files;
    written.n_bytes += static_cast<int64_t>(it->file_size(of_entry));
  }
  return written;
}

ExportCheck check_export(const fs::path& model, const fs::path& target, const ExportForm& wanted) {
  ExportCheck check;
  fs::path directory, whole;
  if (const auto trouble = words_of_trouble([&] {
        directory = config::find_model(model.string());
        // An adapter is merged into a directory as large as its model.
        whole = config::is_adapter(directory) ? config::find_base(directory) : directory;
      })) {
    check.trouble = *trouble;
    return check;
  }
  check.form = read_model_form(path_text(directory));
  check.files = model_files(whole);
  for (const auto& [name, n_bytes] : check.files)
    check.needed_bytes += n_bytes;
  if (wanted.is_gguf) {
    if (check.form.kind != FormKind::generation) {
      check.trouble = ExportWords::tr(
          "A GGUF file holds a language model that continues texts, and this is none. Choose the "
          "Hugging Face folder.");
      return check;
    }
    if (const auto trouble = words_of_trouble([&] {
          const HfConfig config = HfConfig::load(config::config_file_of(directory));
          if (const int64_t n_bytes = gguf_bytes(config, wanted.gguf_type))
            check.needed_bytes = n_bytes;
        })) {
      check.trouble = *trouble;
      return check;
    }
    check.files = {{path_text(target.filename()), check.needed_bytes}};
  }
  check.trouble = trouble_of_target(target, directory, wanted.is_gguf);
  if (!check.trouble.isEmpty()) return check;
  check.free_bytes = free_disk_bytes(nearest_directory(target)).value_or(-1);
  if (check.free_bytes >= 0 && check.free_bytes < check.needed_bytes)
    check.trouble = ExportWords::tr("The disk is too full: %1 are needed and %2 are free.")
                        .arg(bytes_text(check.needed_bytes), bytes_text(check.free_bytes));
  return check;
}

}  // namespace ferry::gui
