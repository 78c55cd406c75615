// Pictures of every page: light and dark, 100 % and 200 %, English and Chinese, and right to left.
// Without arguments it starts itself once for each of these and looks for what is cut, overlaps or
// is empty.
//
//   gui_screenshots [DIRECTORY]                       all pictures; there, or looked at alone
//   gui_screenshots DIRECTORY THEME LANGUAGE [WxH]    one set, at the scale of QT_SCALE_FACTOR
//
// LANGUAGE: en, zh_CN; rtl: English words from right to left; hebrew: words that nobody can read,
// of letters that run from right to left, so that the order of names and amounts between them
// shows.

#include <fmt/format.h>

#include <QApplication>
#include <QComboBox>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QProcess>
#include <QPushButton>
#include <QSet>
#include <QTemporaryDir>
#include <QTimer>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "gui/app/language.h"
#include "gui/app/main_window.h"
#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "gui/pages/new_run/new_run_page.h"
#include "gui/pages/try_it/chat_panel.h"
#include "gui/pages/try_it/try_it_page.h"
#include "src/config/config.h"
#include "tests/gui/pages/fill_check.h"
#include "tests/gui/pages/layout_check.h"
#include "tests/gui/pages/mirrored_words.h"
#include "tests/gui/pages/words_check.h"
#include "tests/gui/sample_runs.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui::test {
namespace {

constexpr QSize kUsual(1180, 780);
/** Pages are laid out anew at these, from a small screen to a large one. */
constexpr QSize kSizes[] = {{1024, 700},  {1280, 800},  {1440, 900},
                            {1920, 1080}, {2560, 1440}, {3840, 2160}};
constexpr const char* kPages[] = {"start",   "runs",   "new_run", "live",   "samples",
                                  "compare", "try_it", "export",  "doctor", "settings"};

void wait_ms(int ms) {
  QEventLoop loop;
  QTimer::singleShot(ms, &loop, &QEventLoop::quit);
  loop.exec();
}

/** The window once nothing changes any more: what threads read comes later, on a busy machine much
 * later. */
QPixmap settled_picture(MainWindow& window) {
  constexpr int kLooks_max = 60, kSame = 2;
  const auto* start = window.page(PageId::start).findChild<QPushButton*>("start_button");
  QPixmap picture;
  QImage before;
  for (int n = 0, n_same = 0; n < kLooks_max && n_same < kSame; ++n) {
    wait_ms(400);
    picture = window.grab();
    const QImage now = picture.toImage();
    const bool is_planned = window.current_page() != PageId::start || start->isEnabled();
    n_same = now == before && is_planned ? n_same + 1 : 0;
    before = now;
  }
  return picture;
}

QStringList faults_of(const MainWindow& window, const QImage& picture) {
  constexpr double kMostEmpty = 0.93;
  QStringList faults = layout_faults(window) + column_faults(window);
  if (const double share = emptiness(picture); share > kMostEmpty)
    faults << QStringLiteral("empty: %1 of the page has one colour").arg(share);
  return faults;
}

/** Runs of every kind, so that no page is empty. */
std::vector<std::filesystem::path> write_runs(const std::filesystem::path& runs) {
  return {
      write_run(runs, {.name = "2026-11-18_2140_smollm2-135m_shakespeare",
                       .model = "SmolLM2-135M",
                       .task = "causal-lm",
                       .dataset = "shakespeare.txt",
                       .first_loss = 4.5,
                       .has_samples = true}),
      write_run(runs, {.name = "2026-11-19_0930_minilm_reviews", .n_taken = 600}),
      write_run(
          runs,
          {.name = "2026-11-19_1105_minilm_reviews-lr", .first_loss = 1.9, .learning_rate = 2e-5}),
      write_run(runs, {.name = "2026-11-20_0815_bert-large_topics",
                       .model = "bert-large-uncased",
                       .dataset = "topics.tsv",
                       .phase = "stopped",
                       .exit_reason = "stopped as asked",
                       .n_taken = 260}),
      write_run(runs, {.name = "2026-11-20_1015_roberta-base_ner",
                       .model = "roberta-base",
                       .task = "token-classification",
                       .dataset = "ner.jsonl",
                       .phase = "training",
                       .exit_reason = "",
                       .n_taken = 340}),
  };
}

/** Some labelled texts. */
void write_messages(const std::filesystem::path& file) {
  std::ofstream out(file);
  out << "text,label\n";
  const char* const wishes[] = {"The parcel has not come yet and nobody answers the phone",
                                "Thank you for the quick repair, it works again",
                                "How do I change the address of my account?"};
  const char* const labels[] = {"complaint", "praise", "question"};
  for (int i = 0; i < 240; ++i)
    out << '"' << wishes[i % 3] << (i % 4 ? "." : ". I wrote about it last week, too.") << "\","
        << labels[i % 3] << '\n';
}

/** A chat model that was trained from another one; gives its run. */
std::filesystem::path write_chat_run(const std::filesystem::path& home,
                                     const std::filesystem::path& runs) {
  const auto origin = home / "models" / "small-chat";
  ferry::test::write_tiny_chat_model(origin);
  const auto run = write_run(runs, {.name = "2026-11-20_0730_small-chat_support",
                                    .model = origin.string(),
                                    .task = "causal-lm",
                                    .dataset = "support.jsonl",
                                    .has_checkpoint = false});
  ferry::test::write_tiny_chat_model(run / "final");
  return run;
}

/** Chats with faults that preflight finds: answers without a word, and chats that come again. */
void write_chats(const std::filesystem::path& file) {
  std::ofstream out(file);
  for (int i = 0; i < 60; ++i)
    out << R"({"messages": [{"role": "system", "content": "the old bird"},)"
        << R"( {"role": "user", "content": "the house is"}, {"role": "assistant", "content": ")"
        << (i % 10 == 3 ? ""
            : i % 2     ? "red and very old"
                        : "a blue car")
        << R"("}, {"role": "user", "content": "a bird"},)"
        << R"( {"role": "assistant", "content": "the green house"}]})" << '\n';
}

/** Shows a chat with both models; none answers in a picture. */
void show_chat(ChatPanel& panel) {
  const QString question = "My parcel has not come yet. What can I do?";
  panel.chats().tuned().take_over(
      {{.question = question,
        .answer = "I am sorry for that. Please give me the number of your order, and I ask the "
                  "carrier where it is.",
        .note = {}},
       {.question = "It is 4711.",
        .answer = "Thank you. It left Hamburg this morning, and is with you tomorrow.",
        .note = "Stopped."}});
  panel.chats().set_compares(true);
  panel.chats().base().take_over(
      {{.question = question,
        .answer = "Parcels are boxes.\nA parcel may be late for many reasons, such as:\n1. the "
                  "weather\n2. a holiday\n3. the weather",
        .note = "Cut here: the answer has as many tokens as were asked for."},
       {.question = "It is 4711.", .answer = "4711 is a number.", .note = {}}});
}

/** `size`: of the pictures; empty: the usual one, and other sizes are looked at, too. */
int take_set(const QString& directory, const QString& theme, const QString& language, QSize size) {
  const bool looks_at_sizes =
      size.isEmpty() && theme == "light" && language == "en" && qApp->devicePixelRatio() == 1;
  if (size.isEmpty()) size = kUsual;
  QTemporaryDir home;
  // Runs of the machine's user are not in the pictures.
  qputenv("XDG_DATA_HOME", home.filePath("data").toUtf8());
  qputenv("XDG_CONFIG_HOME", home.filePath("config").toUtf8());
  AppSettings settings(home.filePath("app.ini"));
  const auto runs = to_path(home.filePath("runs"));
  const auto all = write_runs(runs);
  const auto chat_run = write_chat_run(to_path(home.path()), runs);
  settings.set_runs_directory(runs);
  apply_theme(theme == "dark" ? Theme::dark : Theme::light);
  settings.set_theme(theme == "dark" ? Theme::dark : Theme::light);
  MainWindow window(settings);
  window.resize(size);
  window.show();
  const auto data = to_path(home.filePath("messages.csv"));
  write_messages(data);
  config::Config config;
  for (const auto& [key, value] :
       {std::pair{"model", "all-MiniLM-L6-v2"}, {"max_length", "128"}, {"learning_rate", "3e-5"}})
    config.set(key, value, {config::Source::command_line, "test"});
  config.set("dataset", data.string(), {config::Source::command_line, "test"});
  emit window.navigator().new_run_wanted(config);
  emit window.navigator().samples_wanted(all[0]);
  emit window.navigator().compare_wanted({all[1], all[2]});
  emit window.navigator().export_wanted(all[1]);
  emit window.navigator().try_wanted(all[1]);
  emit window.navigator().live_wanted(all[1]);
  constexpr int kLayoutMs = 60, kLooks = 40;  // layouts take some turns of the event loop
  int n_faults = 0;
  const auto take = [&](const QString& name) {
    const QPixmap picture = settled_picture(window);
    const QString file = QStringLiteral("%1-%2-%3-%4.png")
                             .arg(name, theme)
                             .arg(static_cast<int>(100 * picture.devicePixelRatio()))
                             .arg(language);
    if (!directory.isEmpty() && !picture.save(directory + "/" + file))
      fmt::print("{}: cannot be written\n", file.toStdString()), ++n_faults;
    QStringList faults = faults_of(window, picture.toImage());
    if (language.startsWith("zh")) faults += english_phrases(window);
    for (const QSize& other :
         looks_at_sizes ? QList(std::begin(kSizes), std::end(kSizes)) : QList<QSize>()) {
      window.resize(other);
      QStringList found;
      for (int look = 0; look < kLooks && (look == 0 || !found.isEmpty()); ++look) {
        wait_ms(kLayoutMs);
        found = faults_of(window, window.grab().toImage());
      }
      for (const QString& fault : found)
        faults << QStringLiteral("at %1x%2: %3").arg(other.width()).arg(other.height()).arg(fault);
    }
    if (looks_at_sizes) window.resize(size), wait_ms(kLayoutMs);
    for (const QString& fault : faults)
      fmt::print("{}: {}\n", file.toStdString(), fault.toStdString()), ++n_faults;
  };
  for (int page = 0; page < 10; ++page) {
    window.show_page(static_cast<PageId>(page));
    if (static_cast<PageId>(page) != PageId::new_run) {
      take(kPages[page]);
      continue;
    }
    auto& new_run = dynamic_cast<NewRunPage&>(window.page(PageId::new_run));
    for (const auto& [step, name] : {std::pair{NewRunPage::model_step, "new_run-model"},
                                     {NewRunPage::data_step, "new_run-data"},
                                     {NewRunPage::method_step, "new_run-method"},
                                     {NewRunPage::memory_step, "new_run-memory"},
                                     {NewRunPage::review_step, "new_run-review"}}) {
      new_run.show_step(step);
      if (step == NewRunPage::memory_step) {  // a large model on a card that is not here
        new_run.settings().reset("model_name_or_path");
        for (const auto& [key, value] : {std::pair{"config_name", "bert-large-uncased"},
                                         {"tokenizer_name", "all-MiniLM-L6-v2"},
                                         {"max_length", "384"},
                                         {"train_batch_size", "64"}})
          new_run.settings().set_text(key, value);
        for (auto* combo : new_run.findChildren<QComboBox*>())
          if (const int card = combo->findText("2080", Qt::MatchContains); card >= 0)
            combo->setCurrentIndex(card), emit combo->activated(card);
      }
      take(name);
    }
  }
  // A language model: the chat with its base beside it, the other form of export, adapters.
  emit window.navigator().try_wanted(chat_run);
  window.show_page(PageId::try_it);
  auto& try_it = dynamic_cast<TryItPage&>(window.page(PageId::try_it));
  for (int look = 0; look < kLooks && !try_it.is_chat(); ++look)
    wait_ms(kLayoutMs);
  show_chat(*try_it.findChild<ChatPanel*>());
  take("try_it-chat");
  emit window.navigator().export_wanted(chat_run);
  window.show_page(PageId::export_model);
  window.page(PageId::export_model).findChild<QComboBox*>("export_form")->setCurrentIndex(1);
  take("export-gguf");
  const auto chats = to_path(home.filePath("support.jsonl"));
  write_chats(chats);
  config::Config adapters;
  for (const auto& [key, value] :
       {std::pair{"model", home.filePath("models/small-chat").toStdString()},
        {"dataset", chats.string()},
        {"task", "causal-lm"},
        {"tuning", "lora"}})
    adapters.set(key, value, {config::Source::command_line, "test"});
  emit window.navigator().new_run_wanted(adapters);
  auto& chat_training = dynamic_cast<NewRunPage&>(window.page(PageId::new_run));
  for (const auto& [step, name] : {std::pair{NewRunPage::data_step, "new_run-chats"},
                                   {NewRunPage::method_step, "new_run-lora"}}) {
    chat_training.show_step(step);
    take(name);
  }
  std::fflush(stdout);
  return n_faults ? 1 : 0;
}

/** The sets of one scale at once: each mostly waits for what threads read. */
int take_all(const QString& program, const QString& directory) {
  int n_failed = 0;
  for (const char* scale : {"1", "2"}) {
    std::vector<std::unique_ptr<QProcess>> sets;
    for (const char* theme : {"light", "dark"})
      for (const char* language : {"en", "zh_CN", "rtl"}) {
        // Mirrored once: sizes and colours do not depend on it.
        if (language == std::string_view("rtl") && theme + std::string(scale) != "light1") continue;
        auto& process = sets.emplace_back(std::make_unique<QProcess>());
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("QT_SCALE_FACTOR", scale);
        process->setProcessEnvironment(environment);
        process->setProcessChannelMode(QProcess::ForwardedChannels);
        process->start(program, {directory, theme, language});
      }
    for (const auto& process : sets) {
      process->waitForFinished(240'000);
      if (process->exitStatus() == QProcess::NormalExit && process->exitCode() == 0) continue;
      fmt::print("{} {}: failed\n", scale, process->arguments().join(' ').toStdString());
      ++n_failed;
    }
  }
  return n_failed ? 1 : 0;
}

}  // namespace
}  // namespace ferry::gui::test

int main(int argc, char** argv) {
  using namespace ferry::gui;
  using namespace ferry::gui::test;
  QApplication app(argc, argv);
  const QStringList words = QApplication::arguments();
  if (words.size() < 4)
    return take_all(QApplication::applicationFilePath(), words.size() > 1 ? words[1] : QString());
  // English words, or as many Hebrew letters: these show the order in which people read.
  MirroredWords mirrored(words[3] == "hebrew");
  if (words[3] == "rtl" || words[3] == "hebrew")
    QCoreApplication::installTranslator(&mirrored);
  else
    install_language(app, words[3]);
  const QStringList sides = words.value(4).split('x');
  return take_set(words[1], words[2], words[3],
                  sides.size() == 2 ? QSize(sides[0].toInt(), sides[1].toInt()) : QSize());
}
