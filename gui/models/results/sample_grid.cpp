#include "gui/models/results/sample_grid.h"

#include <QCoreApplication>
#include <QFile>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/runs/directory/sample_files.h"

namespace ferry::gui {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr qint64 kFileMax = qint64{64} << 20;
constexpr qsizetype kShownInCell = 240;

QString settings_text(const ordered_json& settings) {
  QStringList words;
  for (const auto& [key, value] : settings.items()) {
    if (value.is_array() && value.empty()) continue;
    // By its name in the forms; a newer Ferry may have written one that is not known here.
    const config::Option* const option = config::find_option(key).option;
    const QString name = option ? label_of(*option) : to_text(key).replace('_', ' ');
    words << QCoreApplication::translate("SampleGrid", "%1 %2", "setting and value")
                 .arg(name,
                      to_text(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace)));
  }
  return listed(words);
}

std::optional<Sample> parse_sample(const QByteArray& line) {
  const auto json = ordered_json::parse(line.begin(), line.end(), nullptr, false);
  if (!json.is_object() || !json.contains("prompt") || !json.contains("text")) return std::nullopt;
  Sample sample{.prompt = text_in(json, "prompt"),
                .text = text_in(json, "text"),
                .ended = text_in(json, "ended")};
  if (const auto ids = json.find("ids"); ids != json.end() && ids->is_array())
    sample.n_tokens = static_cast<int64_t>(ids->size());
  if (const auto n = json.find("n_prompt_tokens"); n != json.end() && n->is_number_integer())
    sample.n_prompt_tokens = n->get<int64_t>();
  if (const auto settings = json.find("settings"); settings != json.end() && settings->is_object())
    sample.settings = settings_text(*settings);
  return sample;
}

void read_file(const fs::path& path, SampleFile& file, QString& trouble) {
  QFile in;
  if (!open_to_read(in, path)) {
    trouble = QCoreApplication::translate("SampleGrid", "%1 cannot be read: %2")
                  .arg(shown_path(path), in.errorString());
    return;
  }
  for (const QByteArray& line : in.read(kFileMax).split('\n')) {
    if (line.trimmed().isEmpty()) continue;
    if (auto sample = parse_sample(line))
      file.samples.push_back(std::move(*sample));
    else
      ++file.n_bad_lines;
  }
}

}  // namespace

SampleFiles read_samples(const fs::path& run, const std::map<int64_t, FileStamp>& known) {
  SampleFiles files;
  std::error_code error;
  fs::directory_iterator it(run / "samples", error), end;
  if (error && error != std::errc::no_such_file_or_directory)
    files.trouble = QCoreApplication::translate("SampleGrid", "%1 cannot be read: %2")
                        .arg(shown_path(run / "samples"), isolated(to_text(error.message())));
  for (; !error && it != end; it.increment(error)) {
    const auto step = runs::step_of_samples(it->path().filename().string());
    if (!step) continue;
    const auto stamp = file_stamp(it->path());
    if (!stamp) continue;
    files.steps.push_back(*step);
    const auto before = known.find(*step);
    if (before != known.end() && before->second == *stamp) continue;
    SampleFile file{.step = *step, .stamp = *stamp, .samples = {}};
    read_file(it->path(), file, files.trouble);
    files.read.push_back(std::move(file));
  }
  std::sort(files.steps.begin(), files.steps.end());
  std::sort(files.read.begin(), files.read.end(),
            [](const SampleFile& a, const SampleFile& b) { return a.step < b.step; });
  return files;
}

SampleGrid::SampleGrid(QObject* parent) : QAbstractTableModel(parent), background_(this) {}

void SampleGrid::set_run(const fs::path& run) {
  background_.forget();
  beginResetModel();
  run_ = run;
  prompts_.clear();
  columns_.clear();
  trouble_.clear();
  endResetModel();
}

void SampleGrid::look() {
  if (run_.empty() || background_.is_busy()) return;
  std::map<int64_t, FileStamp> known;
  for (const Column& column : columns_)
    known.emplace(column.step, column.stamp);
  background_.ask([run = run_, known = std::move(known)] { return read_samples(run, known); },
                  [this](SampleFiles files, const QString& trouble) {
                    if (!trouble.isEmpty()) files.trouble = trouble;
                    take(files);
                  });
}

void SampleGrid::take(const SampleFiles& files) {
  bool has_changed = files.trouble != trouble_ || !files.read.empty();
  trouble_ = files.trouble;
  const size_t n_before = columns_.size();
  if (trouble_.isEmpty()) remove_gone(files.steps);
  has_changed = has_changed || columns_.size() != n_before;
  for (const SampleFile& file : files.read)
    put(file);
  emit looked(has_changed);
}

/** A run that goes back to an earlier step removes the later samples. */
void SampleGrid::remove_gone(const std::vector<int64_t>& steps) {
  for (int column = n_steps(); column-- > 0;) {
    if (std::binary_search(steps.begin(), steps.end(), step(column))) continue;
    beginRemoveColumns({}, column, column);
    columns_.erase(columns_.begin() + column);
    endRemoveColumns();
  }
}

/** The row of each sample: the same prompt twice in a file is two rows. */
std::vector<size_t> SampleGrid::rows_of(const std::vector<Sample>& samples) {
  std::vector<size_t> rows;
  std::vector<QString> wanted = prompts_;
  for (const Sample& sample : samples) {
    size_t row = 0;
    while (row < wanted.size() &&
           (wanted[row] != sample.prompt || std::find(rows.begin(), rows.end(), row) != rows.end()))
      ++row;
    if (row == wanted.size()) wanted.push_back(sample.prompt);
    rows.push_back(row);
  }
  if (wanted.size() > prompts_.size()) {
    beginInsertRows({}, n_prompts(), static_cast<int>(wanted.size()) - 1);
    prompts_ = std::move(wanted);
    for (Column& column : columns_)
      column.samples.resize(prompts_.size());
    endInsertRows();
  }
  return rows;
}

void SampleGrid::put(const SampleFile& file) {
  const std::vector<size_t> rows = rows_of(file.samples);
  Column column{.step = file.step,
                .stamp = file.stamp,
                .samples = std::vector<std::optional<Sample>>(prompts_.size()),
                .n_bad_lines = file.n_bad_lines};
  for (size_t i = 0; i < rows.size(); ++i)
    column.samples[rows[i]] = file.samples[i];
  const auto at = std::lower_bound(columns_.begin(), columns_.end(), file.step,
                                   [](const Column& c, int64_t step) { return c.step < step; });
  const int place = static_cast<int>(at - columns_.begin());
  if (at != columns_.end() && at->step == file.step) {
    *at = std::move(column);
    if (n_prompts() > 0) emit dataChanged(index(0, place), index(n_prompts() - 1, place));
    return;
  }
  beginInsertColumns({}, place, place);
  columns_.insert(at, std::move(column));
  endInsertColumns();
}

const Sample* SampleGrid::sample(int row, int column) const {
  if (row < 0 || column < 0 || row >= n_prompts() || column >= n_steps()) return nullptr;
  const auto& cell = columns_[static_cast<size_t>(column)].samples[static_cast<size_t>(row)];
  return cell ? &*cell : nullptr;
}

int64_t SampleGrid::n_bad_lines() const {
  int64_t n = 0;
  for (const Column& column : columns_)
    n += column.n_bad_lines;
  return n;
}

int SampleGrid::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : n_prompts();
}
int SampleGrid::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : n_steps();
}

QVariant SampleGrid::data(const QModelIndex& index, int role) const {
  const Sample* const at = index.isValid() ? sample(index.row(), index.column()) : nullptr;
  if (!index.isValid()) return {};
  if (role == Qt::DisplayRole) return at ? at->text.left(kShownInCell).simplified() : tr("none");
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignLeading | Qt::AlignTop);
  if (role == Qt::ToolTipRole && at) return at->text.left(2000);
  if (role == Qt::AccessibleTextRole)
    return tr("After %1 steps, prompt %2: %3")
        .arg(step(index.column()))
        .arg(prompt(index.row()), at ? at->text : tr("none"));
  return {};
}

QVariant SampleGrid::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  if (orientation == Qt::Horizontal)
    return section < n_steps() ? tr("Step %1").arg(step(section)) : QVariant();
  if (section >= n_prompts()) return {};
  const QString& whole = prompt(section);
  return role == Qt::ToolTipRole ? whole : whole.simplified();
}

}  // namespace ferry::gui
