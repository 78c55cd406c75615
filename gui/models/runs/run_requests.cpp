#include "gui/models/runs/run_requests.h"

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace fs = std::filesystem;

void RunRequests::pause(const fs::path& run) {
  ask(run, [](service::RunClient& client) { client.pause(); });
}
void RunRequests::resume(const fs::path& run) {
  ask(run, [](service::RunClient& client) { client.resume(); });
}
void RunRequests::stop(const fs::path& run) {
  ask(run, [](service::RunClient& client) { client.stop(/*saves=*/true); });
}

void RunRequests::ask(const fs::path& run,
                      const std::function<void(service::RunClient&)>& question) {
  const auto trouble = words_of_trouble([&] {
    Client& client = clients_[run];
    if (!client.asks) {
      client.asks = std::make_unique<service::RunClient>(run);
      client.replies =
          std::make_unique<QSocketNotifier>(client.asks->descriptor(), QSocketNotifier::Read);
      connect(client.replies.get(), &QSocketNotifier::activated, this, [this, run] { take(run); });
    }
    question(*client.asks);
  });
  if (!trouble) return;
  if (const auto found = clients_.find(run);
      found != clients_.end() && (!found->second.asks || found->second.asks->n_waiting() == 0))
    clients_.erase(found);
  emit replied(run, false, *trouble);
}

void RunRequests::take(const fs::path& run) {
  const auto found = clients_.find(run);
  if (found == clients_.end()) return;
  const std::vector<service::RunReply> replies = found->second.asks->take();
  if (found->second.asks->n_waiting() == 0) {
    // The notifier is sending the signal that led here: it goes later.
    found->second.replies->setEnabled(false);
    found->second.replies.release()->deleteLater();
    clients_.erase(found);
  }
  for (const service::RunReply& reply : replies)
    emit replied(run, reply.outcome == service::RunReply::Outcome::done, to_text(reply.text));
}

}  // namespace ferry::gui
