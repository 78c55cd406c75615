#include "gui/models/results/export_check.h"

#include <unistd.h>

#include <QCoreApplication>
#include <algorithm>

#include "gui/models/runs/run_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/config/models/models.h"
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

QString trouble_of_target(const fs::path& target, const fs::path& model) {
  if (target.empty()) return ExportWords::tr("Choose a folder to write to.");
  if (!target.is_absolute())
    return ExportWords::tr("Give the whole path of the folder, from / on.");
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
  if (fs::exists(partial_of(target), error))
    return ExportWords::tr(
               "%1 is left of an export that was interrupted. Remove it, or choose "
               "another folder.")
        .arg(shown_path(partial_of(target)));
  const fs::path above = nearest_directory(target.parent_path());
  if (!fs::is_directory(above, error))
    return ExportWords::tr("%1 is no folder.").arg(shown_path(above));
  if (access(above.c_str(), W_OK | X_OK) != 0)
    return ExportWords::tr("Nothing may be written to %1.").arg(shown_path(above));
  return {};
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

fs::path partial_of(const fs::path& target) {
  const fs::path named = target.has_filename() ? target : target.parent_path();
  return named.string() + ".partial";
}

Written written_in(const fs::path& directory) {
  Written written;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code of_entry;
    if (!it->is_regular_file(of_entry)) continue;
    ++written.n_files;
    written.n_bytes += static_cast<int64_t>(it->file_size(of_entry));
  }
  return written;
}

ExportCheck check_export(const fs::path& model, const fs::path& target) {
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
  check.trouble = trouble_of_target(target, directory);
  if (!check.trouble.isEmpty()) return check;
  check.free_bytes = free_disk_bytes(nearest_directory(target)).value_or(-1);
  if (check.free_bytes >= 0 && check.free_bytes < check.needed_bytes)
    check.trouble = ExportWords::tr("The disk is too full: %1 are needed and %2 are free.")
                        .arg(bytes_text(check.needed_bytes), bytes_text(check.free_bytes));
  return check;
}

}  // namespace ferry::gui
