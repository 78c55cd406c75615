#include "gui/models/text.h"

#include "gui/models/service_words.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QFile>
#include <QSet>
#include <QTranslator>
#include <QXmlStreamReader>

#include "gui/models/plan/plan_types.h"
#include "gui/models/settings/option_text.h"
#include "src/runs/directory/run_directory.h"
#include "src/service/runs/run_actions.h"
#include "tests/request/settings.h"

namespace ferry::gui {
namespace {

TEST(Text, APathComesBackByteForByte) {
  for (const char* path :
       {"", "/", "/runs/plain", "/runs/\xe8\xae\xad\xe7\xbb\x83 \xf0\x9f\x9a\xa2", "/runs/caf\xe9",
        "\xff\xfe", "/a\xc3", "/\xed\xa0\x80/b", "/a\xf0\x9f\x9a/b", "/\xed\xb2\x80"}) {
    const QString text = path_text(path);
    EXPECT_EQ(to_path(text).native(), path);
  }
}

TEST(Text, AValidPathIsItsText) {
  EXPECT_EQ(path_text("/runs/\xe8\xae\xad\xe7\xbb\x83"), QString::fromUtf8("/runs/训练"));
  EXPECT_EQ(path_text("/runs/caf\xe9").size(), 10);
}

TEST(ServiceWords, LinesWithNamesKeepTheNames) {
  class Shouts : public QTranslator {
   public:
    bool isEmpty() const override { return false; }
    QString translate(const char*, const char* text, const char*, int) const override {
      return QString::fromUtf8(text).contains("rows by label") ? "ROWS <%1>"
             : QString::fromUtf8(text).contains("text is column") &&
                     QString::fromUtf8(text).contains("%3")
                 ? "%3, %2 IN %1"
                 : QString();
    }
  } shouts;
  ASSERT_TRUE(QCoreApplication::installTranslator(&shouts));
  EXPECT_EQ(service_words("rows by label: a 3, b 4"), "ROWS <a 3, b 4>");
  EXPECT_EQ(service_words("/d/%2.csv: text is column 't', label is column 'l'"),
            "l, t IN /d/%2.csv");
  EXPECT_EQ(service_words("something else; 3 of it"), "something else; 3 of it");
  QCoreApplication::removeTranslator(&shouts);
}

/** Texts of one context that have a translation into Chinese. */
QSet<QString> translated_texts(const QString& context) {
  QFile file(QStringLiteral(FERRY_SOURCE_ROOT "/gui/translations/ferry_zh_CN.ts"));
  EXPECT_TRUE(file.open(QIODevice::ReadOnly));
  QSet<QString> texts;
  QXmlStreamReader xml(&file);
  QString name;
  while (!xml.atEnd()) {
    if (xml.readNext() != QXmlStreamReader::StartElement) continue;
    if (xml.name() == QLatin1String("name"))
      name = xml.readElementText();
    else if (xml.name() == QLatin1String("source") && name == context)
      texts << xml.readElementText();
  }
  return texts;
}

/** Notes what is looked up and has no translation. */
class Misses : public QTranslator {
 public:
  Misses() { QCoreApplication::installTranslator(this); }
  ~Misses() override { QCoreApplication::removeTranslator(this); }
  bool isEmpty() const override { return false; }
  QString translate(const char* context, const char* text, const char*, int) const override {
    if (QLatin1String(context) == QLatin1String("service")) {
      ++n_asked;
      if (!known_.contains(QString::fromUtf8(text))) missed << text;
    }
    return {};
  }
  mutable QSet<QByteArray> missed;
  mutable int n_asked = 0;

 private:
  const QSet<QString> known_ = translated_texts("service");
};

TEST(ServiceWords, ReasonsWhyNotHaveTranslations) {
  const Misses misses;
  std::vector<std::string> phases = {"unreadable"};
  for (int i = 0; i <= static_cast<int>(runs::Phase::sampling); ++i)
    phases.emplace_back(name_of(static_cast<runs::Phase>(i)));
  for (const std::string& phase : phases)
    for (const auto trainer : {service::Trainer::none, service::Trainer::here,
                               service::Trainer::elsewhere, service::Trainer::unknown})
      for (int bits = 0; bits < 128; ++bits) {
        const auto allowed = service::allowed_actions({.phase = phase,
                                                       .trainer = trainer,
                                                       .has_socket = (bits & 1) != 0,
                                                       .has_prompts = (bits & 2) != 0,
                                                       .waits_for_room = (bits & 4) != 0,
                                                       .has_checkpoint = (bits & 8) != 0,
                                                       .is_writable = (bits & 16) != 0,
                                                       .is_removable = (bits & 32) != 0,
                                                       .is_stop_overdue = (bits & 64) != 0});
        for (size_t i = 0; i < service::kRunActions; ++i) {
          const auto why = allowed.why_not(static_cast<service::RunAction>(i));
          if (!why.empty()) service_words(to_text(why));
        }
      }
  EXPECT_GT(misses.n_asked, 100);
  for (const QByteArray& text : misses.missed)
    ADD_FAILURE() << "not translated: " << text.toStdString();
}

TEST(ServiceWords, PlansHaveTranslations) {
  const Misses misses;
  service::Planner planner;
  QSet<QString> whys;
  const auto plan = [&](Settings more) {
    for (const auto& one : Settings{{"model", "bert-large-uncased"},
                                    {"machine", "2080ti-11g"},
                                    {"task", "classification"}})
      more.push_back(one);
    const service::PlanAnswer answer =
        planner.answer(ferry::config_of(more), {.looks_for_gains = false});
    if (answer.plan) whys << to_text(answer.plan->why);
  };
  for (const char* gpu_memory : {"1800MiB", "2500MiB", "4GiB", "6GiB", "11GiB"})
    for (const char* batch_size : {"8", "64"})
      plan({{"gpu_memory", gpu_memory}, {"train_batch_size", batch_size}});
  for (const char* placement : {"host", "resident"})
    for (const char* activations : {"keep", "selective", "recompute", "host"})
      plan({{"placement", placement}, {"activations", activations}, {"gpu_memory", "10GiB"}});
  plan({{"placement", "host"}, {"accumulation_order", "vertical"}, {"train_batch_size", "64"}});
  plan({{"placement", "host"}, {"layer_inputs", "host"}});
  EXPECT_GT(whys.size(), 5);
  for (const QString& why : whys)
    service_words(why);
  for (const QByteArray& text : misses.missed)
    ADD_FAILURE() << "not translated: " << text.toStdString();
}

TEST(ServiceWords, AnswersOfARunHaveTranslations) {
  const Misses misses;
  for (const char* answer :
       {"paused after step 12", "paused; the GPU's memory is free after step 12",
        "paused; this driver cannot give the GPU's memory back before the end after step 3",
        "resumed after step 12", "stops after step 3, unsaved", "the run has ended",
        "the run is not paused", "the run is paused already", "it stays paused: no room",
        "learning_rate = 1e-05 from step 12 on", "the run is paused: resume it first"})
    service_words(answer);
  EXPECT_GT(misses.n_asked, 10);
  for (const QByteArray& text : misses.missed)
    ADD_FAILURE() << "not translated: " << text.toStdString();
}

TEST(ServiceWords, ExpectationsHaveTranslations) {
  const Misses misses;
  for (const config::Option& option : config::option_table())
    if (option.verbs & config::kTrain) (void)expected_of(option);
  EXPECT_GT(misses.n_asked, 50);
  for (const QByteArray& text : misses.missed)
    ADD_FAILURE() << "not translated: " << text.toStdString();
}

}  // namespace
}  // namespace ferry::gui
