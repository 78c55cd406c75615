#pragma once
// The ranks of a run, or of a group of it, and the messages between them. Every rank has one
// object; all ranks of a group make the same calls in the same order, each from one thread at a
// time. Different groups may work at the same time in different threads. No torch.
//
//   const RankEnvironment environment = *read_rank_environment(std::getenv);
//   const auto comm = connect(environment, options);
//   comm->sum(losses);
//   const auto even_and_odd = comm->split(environment.rank % 2);
//   const std::vector<uint64_t> hashes = even_and_odd->gather_values(hash);
//
// Every call ends within the deadline, or some seconds after it where it asks why. It throws
// Error(machine) where a rank does not come in that time or is gone; the message names the call and
// the rank by its number in the run. After that the object stays failed: all later calls throw at
// once, and ranks that wait for this one throw, too, with the same cause. So one lost rank ends all
// that wait for it, directly or not.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ferry {

class Comm {
 public:
  using SentBytes = std::span<const std::byte>;
  using ReceivedBytes = std::span<std::byte>;

  /** Ranks that still wait for this one throw. */
  virtual ~Comm() = default;
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  int rank() const { return rank_; }
  int world() const { return static_cast<int>(ranks_of_run_.size()); }
  /** By rank of this group, the rank of the run. */
  const std::vector<int>& ranks_of_run() const { return ranks_of_run_; }

  /** The time that each later call has; a group that is split off later takes it over. */
  void set_deadline(std::chrono::milliseconds deadline);
  std::chrono::milliseconds deadline() const { return deadline_; }

  /** Sends bytes to another rank, which receives as many. It waits for that rank to receive: two
   * ranks that send to each other exchange() instead. */
  void send(SentBytes bytes, int to);
  void receive(ReceivedBytes bytes, int from);
  /** Moves several messages at once, by rank: sends[r] goes to rank r, receives[r] comes from it.
   * Any number of large ones may cross. No message goes where a span is empty; the one to this rank
   * itself is copied. What is sent may not be received into. */
  void exchange(std::span<const SentBytes> sends, std::span<const ReceivedBytes> receives);

  /** The same number of bytes of every rank, one after the other by rank. `mine` may lie in its
   * place in `all`. */
  void all_gather(SentBytes mine, ReceivedBytes all);
  /** Any number of bytes of every rank, by rank. */
  std::vector<std::vector<std::byte>> all_gather_varying(SentBytes mine);
  void broadcast(ReceivedBytes bytes, int root);
  /** Returns once all ranks have called it. */
  void barrier();
  /** Adds the values of all ranks, place by place, as ((rank 0 + rank 1) + rank 2) + ...: all ranks
   * get the bits that one thread would. Costs memory for the values of all ranks. */
  void sum(std::span<double> values);
  /** The ranks whose value is another than rank 0's, by rank of this group. */
  std::vector<int> ranks_that_differ(uint64_t value);

  /** A group of the ranks that give the same colour, in the order of their ranks here. All ranks
   * call it. The group and this object may then be used, fail and end independently. */
  std::unique_ptr<Comm> split(int colour);

  /** A value of every rank, by rank. */
  template <typename T>
  requires std::is_trivially_copyable_v<T> std::vector<T> gather_values(const T& mine) {
    std::vector<T> all(static_cast<size_t>(world()));
    all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  /** Rank `root`'s value. */
  template <typename T>
  requires std::is_trivially_copyable_v<T> T broadcast_value(T value, int root) {
    broadcast(std::as_writable_bytes(std::span(&value, 1)), root);
    return value;
  }

 protected:
  using Clock = std::chrono::steady_clock;

  /** Why a call cannot go on; implementations throw it. */
  struct Failure {
    std::string what;  ///< what this rank says
    std::string hint;
    std::string cause;  ///< what ranks that wait for this one say
  };

  Comm(int rank, std::vector<int> ranks_of_run, std::chrono::milliseconds deadline);

  /** Moves the messages that are not empty, none of which goes to this rank itself. Nobody touches
   * their memory any more when it returns or throws. */
  virtual void transfer(std::span<const SentBytes> sends,
                        std::span<const ReceivedBytes> receives,
                        Clock::time_point until) = 0;
  /** A group of `members`, ranks of this one that include it: number n_split of this object's. */
  virtual std::unique_ptr<Comm> make_group(const std::vector<int>& members,
                                           int n_split,
                                           Clock::time_point until) = 0;
  /** This object has failed: others learn the cause, and nothing more is moved. */
  virtual void leave(const std::string& cause) noexcept = 0;

  /** Failures by what is known of other ranks, which are ranks of the run. */
  static Failure gone(const std::vector<int>& ranks, std::string_view reason);
  Failure late(const std::vector<int>& ranks) const;
  static Failure stopped(int rank, std::string_view cause);

  /** Ranks of the run by those of this group. */
  std::vector<int> in_run(const std::vector<int>& peers) const;

 private:
  /** Does the work of a call: looks for an earlier failure first, and keeps one that comes. */
  void call(std::string_view name, const std::function<void(Clock::time_point until)>& work);

  // All calls are made of these three; `until` ends the whole call.
  void move_all(std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives,
                Clock::time_point until);
  void gather(SentBytes mine, ReceivedBytes all, Clock::time_point until);
  void meet(Clock::time_point until);

  const int rank_;
  const std::vector<int> ranks_of_run_;
  std::chrono::milliseconds deadline_;
  int n_splits_ = 0;
  std::optional<std::string> failure_;  ///< the first one; nothing is moved after it
};

}  // namespace ferry
