#include "src/comm/thread_comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "src/base/error.h"

namespace ferry {
namespace {

/** What the ranks of a group share. Each pair of ranks has one place for a message in each
 * direction; the receiver copies out of the sender's memory, and the sender waits for that. */
struct Hub {
  enum class State { empty, offered, being_copied };
  struct Message {
    std::span<const std::byte> bytes;
    State state = State::empty;
  };
  struct Group {
    std::shared_ptr<Hub> hub;
    size_t n_joined = 0;
  };

  explicit Hub(size_t world) : messages(world * world), left(world) {}

  Message& message(int from, int to) { return messages[from * left.size() + to]; }

  std::mutex mutex;  // of all that follows
  std::condition_variable changed;
  std::vector<Message> messages;
  /** By rank: it has failed or was destroyed, and why. */
  std::vector<std::optional<std::string>> left;
  /** Groups that not all of their ranks have joined, by the number of the split and the first
   * rank. */
  std::map<std::pair<int, int>, Group> groups;
};

class ThreadComm final : public Comm {
 public:
  ThreadComm(std::shared_ptr<Hub> hub,
             int rank,
             std::vector<int> ranks_of_run,
             std::chrono::milliseconds deadline)
      : Comm(rank, std::move(ranks_of_run), deadline), hub_(std::move(hub)) {}
  ~ThreadComm() override { leave({}); }

 private:
  void transfer(std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives,
                Clock::time_point until) override;
  std::unique_ptr<Comm> make_group(const std::vector<int>& members,
                                   int n_split,
                                   Clock::time_point until) override;
  void leave(const std::string& cause) noexcept override;

  void copy(ReceivedBytes bytes, int from, std::unique_lock<std::mutex>& lock);
  void take_back(const std::vector<int>& sending, std::unique_lock<std::mutex>& lock);
  std::optional<Failure> failure_of(const std::vector<int>& receiving,
                                    const std::vector<int>& sending);

  const std::shared_ptr<Hub> hub_;
};

void ThreadComm::transfer(std::span<const SentBytes> sends,
                          std::span<const ReceivedBytes> receives,
                          Clock::time_point until) {
  std::vector<int> sending, receiving;  // peers, of what is left to do
  for (int peer = 0; peer < world(); ++peer) {
    if (!sends[peer].empty()) sending.push_back(peer);
    if (!receives[peer].empty()) receiving.push_back(peer);
  }
  std::unique_lock lock(hub_->mutex);
  for (int to : sending)
    hub_->message(rank(), to) = {sends[to], Hub::State::offered};
  hub_->changed.notify_all();
  for (bool in_time = true;;) {
    const size_t n_copied = std::erase_if(receiving, [&](int from) {
      if (hub_->message(from, rank()).state != Hub::State::offered) return false;
      copy(receives[from], from, lock);
      return true;
    });
    std::erase_if(sending,
                  [&](int to) { return hub_->message(rank(), to).state == Hub::State::empty; });
    if (sending.empty() && receiving.empty()) return;
    // The hub was unlocked meanwhile: others may have offered what this rank has looked for before.
    if (n_copied > 0) continue;
    if (std::optional<Failure> failure = failure_of(receiving, sending); failure || !in_time) {
      take_back(sending, lock);
      if (failure) throw *std::move(failure);
      std::vector<int> missing;
      std::ranges::set_union(receiving, sending, std::back_inserter(missing));
      throw late(in_run(missing));
    }
    in_time = hub_->changed.wait_until(lock, until) == std::cv_status::no_timeout;
  }
}

/** Copies an offered message, with the hub unlocked. */
void ThreadComm::copy(ReceivedBytes bytes, int from, std::unique_lock<std::mutex>& lock) {
  Hub::Message& message = hub_->message(from, rank());
  FERRY_CHECK(message.bytes.size() == bytes.size(), "rank {} sends {} bytes, rank {} expects {}",
              from, message.bytes.size(), rank(), bytes.size());
  message.state = Hub::State::being_copied;
  lock.unlock();
  std::memcpy(bytes.data(), message.bytes.data(), bytes.size());
  lock.lock();
  message.state = Hub::State::empty;
  hub_->changed.notify_all();
}

/** Messages that nobody has taken are offered no more; those that are being copied end first. */
void ThreadComm::take_back(const std::vector<int>& sending, std::unique_lock<std::mutex>& lock) {
  for (int to : sending) {
    Hub::Message& message = hub_->message(rank(), to);
    hub_->changed.wait(lock, [&] { return message.state != Hub::State::being_copied; });
    message.state = Hub::State::empty;
  }
}

/** A peer that this rank waits for has left. Its message is not there: it took that back. */
std::optional<Comm::Failure> ThreadComm::failure_of(const std::vector<int>& receiving,
                                                    const std::vector<int>& sending) {
  for (const std::vector<int>* peers : {&receiving, &sending})
    for (int peer : *peers)
      if (const std::optional<std::string>& cause = hub_->left[peer])
        return cause->empty() ? gone(in_run({peer}), {}) : stopped(ranks_of_run()[peer], *cause);
  return std::nullopt;
}

std::unique_ptr<Comm> ThreadComm::make_group(const std::vector<int>& members,
                                             int n_split,
                                             Clock::time_point /*until*/) {
  const std::scoped_lock lock(hub_->mutex);
  const std::pair key(n_split, members.front());
  Hub::Group& group = hub_->groups[key];
  if (!group.hub) group.hub = std::make_shared<Hub>(members.size());
  std::shared_ptr<Hub> hub = group.hub;
  if (++group.n_joined == members.size()) hub_->groups.erase(key);
  const auto place = std::ranges::find(members, rank()) - members.begin();
  return std::make_unique<ThreadComm>(std::move(hub), static_cast<int>(place), in_run(members),
                                      deadline());
}

void ThreadComm::leave(const std::string& cause) noexcept {
  const std::scoped_lock lock(hub_->mutex);
  std::optional<std::string>& left = hub_->left[rank()];
  if (!left) left = cause;
  hub_->changed.notify_all();
}

}  // namespace

std::vector<std::unique_ptr<Comm>> make_thread_comms(int world,
                                                     std::chrono::milliseconds deadline) {
  const auto hub = std::make_shared<Hub>(world);
  std::vector<int> ranks(world);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::unique_ptr<Comm>> comms;
  for (int rank : ranks)
    comms.push_back(std::make_unique<ThreadComm>(hub, rank, ranks, deadline));
  return comms;
}

}  // namespace ferry
