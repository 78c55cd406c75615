#include "gui/models/runs/run_follower.h"

#include <QFile>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/runs/logs/train_log.h"
#include "src/service/runs/trainer_process.h"

namespace ferry::gui {

using service::RunAction;

namespace {

constexpr int kFollowerLookMs = 250, kBackgroundMs = 3000;
constexpr qsizetype kLogLines = 5000;
constexpr qint64 kLogChunk = qint64{128} << 10;

}  // namespace

RunFollower::RunFollower(std::filesystem::path run, QObject* parent)
    : QObject(parent), watch_(run), metrics_(run) {
  catch_up_.setInterval(0);
  connect(&timer_, &QTimer::timeout, this, &RunFollower::look);
  connect(&catch_up_, &QTimer::timeout, this, &RunFollower::read_metrics);
  watch_.look();
  shown_ = watch_.facts();
  shown_record_ = JsonValue(watch_.record());
  shown_trouble_ = trouble();
  allowed_ = service::allowed_actions(shown_);
}

void RunFollower::set_active(bool active) {
  if (active == is_active_) return;
  is_active_ = active;
  timer_.setInterval(active ? kFollowerLookMs : kBackgroundMs);
  if (active) {
    timer_.start();
    look_at_state();
    // Files are read in turns of their own: to show a run takes no longer than its state.
    catch_up_.start();
    QTimer::singleShot(0, this, &RunFollower::read_log);
  } else {
    catch_up_.stop();
    if (has_ended(shown_.phase)) timer_.stop();
  }
}

QString RunFollower::trouble() const {
  return watch_.trouble().empty() ? metrics_trouble_ : message_of(to_text(watch_.trouble())).text;
}

void RunFollower::look() {
  look_at_state();
  if (!is_active_) {
    if (has_ended(shown_.phase)) timer_.stop();
    return;
  }
  read_metrics();
  read_log();
}

void RunFollower::look_at_state() {
  const std::string phase_before = shown_.phase;
  const service::RunFacts& facts = watch_.look();
  const bool has_changed =
      facts != shown_ || trouble() != shown_trouble_ || watch_.record() != *shown_record_;
  if (!has_changed) return;
  shown_ = facts;
  shown_record_ = JsonValue(watch_.record());
  shown_trouble_ = trouble();
  allowed_ = service::allowed_actions(facts);
  emit changed();
  const RunGroup before = run_group(phase_before);
  const bool was_at_work = before == RunGroup::running || before == RunGroup::paused;
  if (was_at_work && has_ended(facts.phase)) emit ended(to_text(facts.phase));
}

void RunFollower::read_metrics() {
  const service::MetricsReader::Poll poll = metrics_.poll();
  metrics_trouble_ = to_text(poll.trouble);
  is_behind_ = poll.is_behind;
  // A long file is read in turns, so that no turn of the event loop is long.
  if (poll.is_behind && is_active_)
    catch_up_.start();
  else
    catch_up_.stop();
  if (poll.has_changed || poll.is_anew) emit metrics_changed(poll.is_anew);
}

void RunFollower::read_log() {
  QFile file;
  if (!open_to_read(file, run() / runs::kTrainLogName)) return;
  const qint64 size = file.size();
  if (size < log_at_) {  // another log
    log_at_ = 0;
    log_rest_.clear();
    log_.clear();
    emit log_anew();
  }
  if (size == log_at_) return;
  QStringList lines;
  if (log_at_ == 0) {
    // The first line is the command, whatever is left out behind it.
    const QByteArray first = file.readLine(64 << 10);
    log_at_ = first.size();
    if (!first.endsWith('\n')) {
      log_at_ = 0;
      return;
    }
    lines << QString::fromUtf8(first).trimmed();
    if (size - log_at_ > kLogChunk) {
      log_at_ = size - kLogChunk;
      file.seek(log_at_);
      log_at_ += file.readLine(kLogChunk).size();
      lines << QStringLiteral("...");
    }
  }
  file.seek(log_at_);
  const QByteArray read = file.read(kLogChunk);
  log_at_ += read.size();
  log_rest_ += read;
  for (qsizetype end; (end = log_rest_.indexOf('\n')) >= 0; log_rest_.remove(0, end + 1))
    lines << QString::fromUtf8(log_rest_.first(end));
  if (lines.isEmpty()) return;
  log_ += lines;
  if (log_.size() > kLogLines) log_.remove(1, log_.size() - kLogLines);
  emit log_grown(lines);
}

service::RunClient& RunFollower::client() {
  if (!client_) {
    client_ = std::make_unique<service::RunClient>(run());
    replies_ =
        std::make_unique<QSocketNotifier>(client_->descriptor(), QSocketNotifier::Read, this);
    connect(replies_.get(), &QSocketNotifier::activated, this, &RunFollower::take_replies);
  }
  return *client_;
}

void RunFollower::take_replies() {
  for (const service::RunReply& reply : client_->take())
    emit replied(reply.outcome == service::RunReply::Outcome::done, to_text(reply.text));
  look();
}

void RunFollower::act(RunAction action, const std::function<void()>& work) {
  if (!allowed_.allows(action)) return;
  if (const auto trouble = words_of_trouble(work)) emit replied(false, *trouble);
  emit changed();  // it waits for an answer now
}

void RunFollower::pause() {
  act(RunAction::pause, [this] { client().pause(); });
}
void RunFollower::resume() {
  act(RunAction::resume, [this] { client().resume(); });
}
void RunFollower::save_now() {
  act(RunAction::save_now, [this] { client().save(); });
}
void RunFollower::sample_now() {
  act(RunAction::sample_now, [this] { client().sample(); });
}
void RunFollower::stop() {
  act(RunAction::stop, [this] {
    client().stop(/*saves=*/true);
    watch_.note_stop();
  });
}
void RunFollower::stop_without_saving() {
  act(RunAction::stop_without_saving, [this] {
    if (service::stops_by_signal(facts())) {
      service::interrupt_trainer(run());
      emit replied(true, tr("It was asked to end."));
    } else {
      client().stop(/*saves=*/false);
    }
    watch_.note_stop();
  });
}
void RunFollower::force_quit() {
  act(RunAction::force_quit, [this] {
    service::kill_trainer(run());
    emit replied(true, tr("Its process was killed."));
  });
}
void RunFollower::set_setting(const QString& key, const QString& value) {
  act(RunAction::change_settings, [&] { client().set(key.toStdString(), value.toStdString()); });
}

}  // namespace ferry::gui
