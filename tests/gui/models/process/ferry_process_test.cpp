#include "gui/models/process/ferry_process.h"

#include <signal.h>

#include "tests/gui/gui_test.h"

namespace ferry::gui {
namespace {

/** The words of a process, from its start to its end. */
struct Heard {
  explicit Heard(FerryProcess& process) {
    QObject::connect(&process, &FerryProcess::text_came, [this](const QString& t) {
      text += t;
      ++n_texts;
    });
    QObject::connect(&process, &FerryProcess::line_came,
                     [this](const nlohmann::ordered_json& line) { lines.push_back(line); });
    QObject::connect(&process, &FerryProcess::finished, [this] { ++n_finished; });
    QObject::connect(&process, &FerryProcess::failed,
                     [this](const QString& message) { failures << message; });
  }
  bool is_over() const { return n_finished + failures.size() > 0; }

  QString text;
  int n_texts = 0, n_finished = 0;
  std::vector<nlohmann::ordered_json> lines;
  QStringList failures;
};

TEST(FerryProcess, GivesLinesAndKeepsNotes) {
  TestHome home;
  PlayedFerry ferry(home,
                    "echo 'ferry: a note' >&2\necho '{\"n\": 1}'\nprintf '{\"n\"'\nsleep 0.1\n"
                    "echo ': 2}'\n");
  FerryProcess process;
  Heard heard(process);
  process.start({"predict", "--json"}, FerryProcess::Output::json);
  EXPECT_TRUE(process.is_running());
  ASSERT_TRUE(wait_until([&] { return heard.is_over(); }));
  EXPECT_TRUE(heard.failures.isEmpty()) << heard.failures.join('|').toStdString();
  ASSERT_EQ(heard.lines.size(), 2u);
  EXPECT_EQ(heard.lines[1].at("n"), 2);
  EXPECT_EQ(process.notes(), QStringList{"a note"});
  EXPECT_EQ(process.command(), "ferry predict --json");
  EXPECT_FALSE(process.is_running());
}

TEST(FerryProcess, StreamsTextWhereACharacterComesInTwoParts) {
  TestHome home;
  PlayedFerry ferry(home, "printf 'a \\303'\nsleep 0.2\nprintf '\\251 b'\n");
  FerryProcess process;
  Heard heard(process);
  process.start({"generate"}, FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return heard.n_texts > 0; }));
  EXPECT_EQ(heard.text, "a ");
  ASSERT_TRUE(wait_until([&] { return heard.is_over(); }));
  EXPECT_EQ(heard.text, QString::fromUtf8("a \u00e9 b"));
  EXPECT_GE(heard.n_texts, 2);
}

TEST(FerryProcess, SaysWhatTheProgramSaidOfItsFailure) {
  TestHome home;
  PlayedFerry ferry(home,
                    "echo 'ferry: max_length = 128, as before' >&2\n"
                    "echo 'ferry: [config.model] no model here' >&2\n"
                    "echo '  its last checkpoint is a model' >&2\nexit 4\n");
  FerryProcess process;
  Heard heard(process);
  process.start({"predict"}, FerryProcess::Output::json);
  ASSERT_TRUE(wait_until([&] { return heard.is_over(); }));
  ASSERT_EQ(heard.failures.size(), 1);
  EXPECT_EQ(heard.failures.front(), "No model here\n  its last checkpoint is a model");
}

TEST(FerryProcess, AnswersThatAreNotJsonAreAFailure) {
  for (const char* script :
       {"echo 'not json at all'\nsleep 5\n", "echo '[1, 2]'\n", "printf '{\"n\": 1'\n"}) {
    TestHome home;
    PlayedFerry ferry(home, script);
    FerryProcess process;
    Heard heard(process);
    process.start({"predict"}, FerryProcess::Output::json);
    ASSERT_TRUE(wait_until([&] { return heard.is_over(); }, 4000)) << script;
    EXPECT_EQ(heard.failures.size(), 1) << script;
    EXPECT_EQ(heard.n_finished, 0) << script;
    EXPECT_FALSE(process.is_running()) << script;
  }
}

TEST(FerryProcess, AProcessThatIsKilledSaysSo) {
  TestHome home;
  PlayedFerry ferry(home, "kill -9 $$\n");
  FerryProcess process;
  Heard heard(process);
  process.start({"predict"}, FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return heard.is_over(); }));
  ASSERT_EQ(heard.failures.size(), 1);
  EXPECT_TRUE(heard.failures.front().contains("signal 9")) << heard.failures.front().toStdString();
}

TEST(FerryProcess, AProgramThatIsNotThereIsSaidAfterStart) {
  TestHome home;
  const WithVariable none("FERRY", (home / "no-such-program").c_str());
  FerryProcess process;
  Heard heard(process);
  process.start({"predict"}, FerryProcess::Output::text);
  EXPECT_TRUE(heard.failures.isEmpty());
  ASSERT_TRUE(wait_until([&] { return heard.is_over(); }));
  EXPECT_TRUE(heard.failures.front().contains("no-such-program"));
  EXPECT_FALSE(process.is_running());
}

TEST(FerryProcess, CancelledItIsSilentAndTheNextOneIsHeard) {
  TestHome home;
  PlayedFerry ferry(home, "echo \"$1\"\nif [ \"$1\" = slow ]; then exec sleep 100000; fi\n");
  FerryProcess process;
  Heard heard(process);
  process.start({"slow"}, FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return heard.n_texts > 0; }));
  process.cancel();  // who waited for the program would wait for a day
  EXPECT_FALSE(process.is_running());
  heard.text.clear();
  process.start({"slow"}, FerryProcess::Output::text);
  process.start({"quick"}, FerryProcess::Output::text);  // takes the place of the first
  ASSERT_TRUE(wait_until([&] { return heard.is_over(); }));
  EXPECT_EQ(heard.text, "quick\n");
  EXPECT_EQ(heard.n_finished, 1);
  EXPECT_TRUE(heard.failures.isEmpty());
}

TEST(FerryProcess, ItsEndWaitsForNothing) {
  TestHome home;
  PlayedFerry ferry(home, "echo $$\nexec sleep 100000\n");
  pid_t pid = 0;
  {
    FerryProcess process;
    Heard heard(process);
    process.start({"predict"}, FerryProcess::Output::text);
    ASSERT_TRUE(wait_until([&] { return heard.text.endsWith('\n'); }));
    pid = heard.text.toInt();
    ASSERT_GT(pid, 0);
  }  // who waited for the program would wait for a day
  ASSERT_TRUE(wait_until([&] { return ::kill(pid, 0) != 0; }));
}

TEST(FerryProcess, ItEndsWithTheAppAlsoWhereThatIsKilled) {
  TestHome home;
  // PR_GET_PDEATHSIG: the signal that it gets at its parent's death.
  PlayedFerry ferry(home,
                    "exec ${FERRY_TEST_PYTHON:-python3} -c 'import ctypes\n"
                    "n = ctypes.c_int()\nctypes.CDLL(None).prctl(2, ctypes.byref(n))\n"
                    "print(n.value)'\n");
  FerryProcess process;
  Heard heard(process);
  process.start({"serve"}, FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return heard.is_over(); }));
  EXPECT_EQ(heard.text.trimmed(), QString::number(SIGKILL));
}

TEST(FerryProcess, TellsCodesVariablesAndTheEndOfWhatWasCancelled) {
  TestHome home;
  PlayedFerry ferry(home, "echo \"$FERRY_API_KEY\"\n[ \"$1\" = 3 ] && exit 3\nkill -9 $$\n");
  FerryProcess process;
  Heard heard(process);
  process.start({"3"}, FerryProcess::Output::text, {{"FERRY_API_KEY", "a key"}});
  ASSERT_TRUE(wait_until([&] { return heard.is_over(); }));
  EXPECT_EQ(heard.text, "a key\n");
  EXPECT_EQ(process.exit_code(), 3);
  process.start({"9"}, FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return heard.failures.size() == 2; }));
  EXPECT_EQ(process.exit_code(), 128 + SIGKILL);

  PlayedFerry slow(home, "echo $$\nexec sleep 100000\n");
  int n_cancelled = 0;
  QObject::connect(&process, &FerryProcess::cancelled, [&] { ++n_cancelled; });
  heard.text.clear();
  process.start({"slow"}, FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return heard.text.endsWith('\n'); }));
  const pid_t pid = heard.text.toInt();
  process.cancel();
  ASSERT_TRUE(wait_until([&] { return n_cancelled == 1; }));
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(FerryProcess, TellsHowMuchWasWritten) {
  TestHome home;
  PlayedFerry ferry(home, "head -c 300000 /dev/zero > out\necho done\nexec sleep 100000\n");
  FerryProcess process;
  Heard heard(process);
  EXPECT_EQ(process.n_bytes_written(), 0);
  process.start({"export"}, FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return !heard.text.isEmpty(); }));
  EXPECT_GE(process.n_bytes_written(), 5);
}

TEST(FerryProcess, TheLastMessageIsFound) {
  EXPECT_EQ(last_message("ferry: one\nferry: two\nand more\n"), "two\nand more");
  EXPECT_EQ(last_message("bare words\n"), "bare words");
  EXPECT_EQ(last_message(""), "");
}

}  // namespace
}  // namespace ferry::gui
