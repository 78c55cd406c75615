// Ranks that are processes, by LibTorch's c10d. One file: its headers take half a minute to
// compile.

#include <ATen/ops/from_blob.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/GlooDeviceFactory.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <fcntl.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <future>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "src/base/error.h"
#include "src/comm/addresses.h"
#include "src/comm/local_comm.h"
#include "src/comm/names.h"
#include "src/comm/rendezvous.h"

namespace ferry {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Store = c10::intrusive_ptr<c10d::Store>;

/** c10d's first line; frames of calls follow it. */
std::string first_line(const std::exception& e) {
  const std::string text = e.what();
  return text.substr(0, text.find('\n'));
}

/** Gloo's first sentence, without the place in its source before it. */
std::string first_sentence(const std::exception& e) {
  std::string text = first_line(e);
  if (text.starts_with('['))
    if (const size_t end = text.find("] "); end != text.npos) text.erase(0, end + 2);
  return text.substr(0, text.find(". "));
}

/** At least a millisecond: zero would mean c10d's own time. */
milliseconds left_until(Clock::time_point until) {
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(until - Clock::now()));
}

/** Returns the result of `work`, or nothing where it throws or takes longer. A store whose process
 * is stopped answers nobody, and no deadline of c10d's counts then: the thread that asked it is
 * left behind.
 */
template <typename Work>
auto within(milliseconds patience, Work work) -> std::optional<decltype(work())> {
  try {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    std::thread(std::move(task)).detach();
    if (result.wait_for(patience) != std::future_status::ready) return std::nullopt;
    return result.get();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/** Returns the result of `work`, or throws its exception. Calls `look` meanwhile; where `look`
 * throws, the thread of `work` is left behind. */
template <typename Work>
auto looking_on(const std::function<void()>& look, Work work) -> decltype(work()) {
  constexpr milliseconds kPause(10);
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  while (result.wait_for(kPause) != std::future_status::ready)
    if (look) look();
  return result.get();
}

std::vector<uint8_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

/** The network that this rank is reached by; one of them is empty. */
struct Network {
  std::string interface, host_name;
};

/** All groups of a rank share this state. */
struct Meeting {
  Network network;
  bool is_served_by_rank_0 = true;      ///< the store; otherwise the launcher serves it
  std::function<void()> while_waiting;  ///< may throw; empty: nothing is to be done
};

/** A store whose waits are many short questions: a wait of c10d's keeps other threads of the
 * process from the store until it ends. */
class PolledStore final : public c10d::Store {
 public:
  explicit PolledStore(c10::intrusive_ptr<c10d::Store> inner) : inner_(std::move(inner)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<PolledStore>(inner_->clone());
  }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    inner_->set(key, value);
  }
  std::vector<uint8_t> compareSet(const std::string& key,
                                  const std::vector<uint8_t>& current,
                                  const std::vector<uint8_t>& next) override {
    return inner_->compareSet(key, current, next);
  }
  std::vector<uint8_t> get(const std::string& key) override {
    wait({key});
    return inner_->get(key);
  }
  int64_t add(const std::string& key, int64_t value) override { return inner_->add(key, value); }
  bool deleteKey(const std::string& key) override { return inner_->deleteKey(key); }
  bool check(const std::vector<std::string>& keys) override { return inner_->check(keys); }
  int64_t getNumKeys() override { return inner_->getNumKeys(); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, getTimeout()); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    const auto until = Clock::now() + timeout;
    while (!inner_->check(keys)) {
      if (Clock::now() > until) return inner_->wait(keys, milliseconds(1));  // throws as it does
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  const milliseconds& getTimeout() const noexcept override { return inner_->getTimeout(); }
  void setTimeout(const milliseconds& timeout) override { inner_->setTimeout(timeout); }
  void append(const std::string& key, const std::vector<uint8_t>& value) override {
    inner_->append(key, value);
  }
  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    wait(keys);
    return inner_->multiGet(keys);
  }
  void multiSet(const std::vector<std::string>& keys,
                const std::vector<std::vector<uint8_t>>& values) override {
    inner_->multiSet(keys, values);
  }
  bool hasExtendedApi() const override { return inner_->hasExtendedApi(); }

 private:
  c10::intrusive_ptr<c10d::Store> inner_;
};

std::shared_ptr<gloo::transport::Device> open_device(const Network& network) {
  try {
    return network.interface.empty()
               ? c10d::GlooDeviceFactory::makeDeviceForHostname(network.host_name, false)
               : c10d::GlooDeviceFactory::makeDeviceForInterface(network.interface, false);
  } catch (const std::exception& e) {
    throw Error(Fault::usage, "comm.connect",
                fmt::format("cannot listen at {} '{}': {}",
                            network.interface.empty() ? "this host's name or address" : "interface",
                            network.interface + network.host_name, first_sentence(e)),
                "`ip address` shows the interfaces and addresses of this host");
  }
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> open_group(
    const Store& store, int rank, int world, const Meeting& meeting, Clock::time_point until) {
  auto options = c10d::ProcessGroupGloo::Options::create(left_until(until));
  options->devices = {open_device(meeting.network)};
  options->threads = 1;  // for collectives, of which there are none here
  // Gloo waits for the addresses of all ranks, and then for each connection. A rank that dies
  // meanwhile gives none, and Gloo would wait until the deadline.
  return looking_on(meeting.while_waiting, [=] {
    return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<PolledStore>(store),
                                                       rank, world, options);
  });
}

/** Where a rank that fails leaves the cause. */
std::string note_key(int rank) {
  return fmt::format("left/{}", rank);
}

class GlooComm final : public Comm {
 public:
  /** `store` is this group's alone. */
  GlooComm(Store store,
           c10::intrusive_ptr<c10d::ProcessGroupGloo> group,
           Meeting meeting,
           std::vector<int> ranks_of_run,
           milliseconds deadline)
      : Comm(group->getRank(), std::move(ranks_of_run), deadline),
        store_(std::move(store)),
        group_(std::move(group)),
        meeting_(std::move(meeting)),
        n_sent_(world()),
        n_received_(world()) {}

 private:
  enum class Kind : uint32_t { payload, end, receipt };
  struct Pending {
    int peer;
    c10::intrusive_ptr<c10d::Work> work;
  };

  void transfer(std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives,
                Clock::time_point until) override;
  std::unique_ptr<Comm> make_group(const std::vector<int>& members,
                                   int n_split,
                                   Clock::time_point until) override;
  void leave(const std::string& cause) noexcept override;

  Pending begin_send(SentBytes bytes, int to, int tag);
  Pending begin_receive(ReceivedBytes bytes, int from, int tag);
  void finish(std::vector<Pending>& pending, Clock::time_point until);
  Failure lost(int peer, const std::string& reason);
  Failure unfinished(std::span<Pending> pending);

  const Store store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;  ///< null once this rank has left
  const Meeting meeting_;
  std::vector<uint32_t> n_sent_, n_received_;  ///< messages, by peer
};

/** Gloo ends the process where a message is longer than its receiver expects. So messages that do
 * not belong together have different tags: the receiver then waits in vain until the deadline. */
int tag_of(uint32_t number, size_t n_bytes, uint32_t kind) {
  const auto size_bits = static_cast<uint32_t>((n_bytes * 0x9E3779B97F4A7C15u) >> 48);
  return static_cast<int>((number % (1u << 13)) << 18 | size_bits << 2 | kind);
}

// Gloo tells those that wait for a peer when the connection closes, but not those whose message is
// under way at that time: they would wait until the deadline. So the receiver of a large message
// waits for one that follows it, and the sender for a receipt.
void GlooComm::transfer(std::span<const SentBytes> sends,
                        std::span<const ReceivedBytes> receives,
                        Clock::time_point until) {
  constexpr size_t kLarge_bytes = 64 << 10;
  // By peer: ends that come and go, receipts that come and go.
  std::vector<std::byte> signs(4 * static_cast<size_t>(world()));
  const auto sign = [&](int peer, int which) {
    return std::span(signs).subspan(4 * static_cast<size_t>(peer) + which, 1);
  };
  std::vector<Pending> incoming, outgoing;
  std::vector<std::pair<int, int>> receipts;  // (peer, tag) of those that this rank gives
  for (int peer = 0; peer < world(); ++peer) {
    const ReceivedBytes bytes = receives[peer];
    if (bytes.empty()) continue;
    const uint32_t number = n_received_[peer]++;
    const auto tag = [&](Kind kind) {
      return tag_of(number, bytes.size(), static_cast<uint32_t>(kind));
    };
    Pending payload = begin_receive(bytes, peer, tag(Kind::payload));
    if (bytes.size() > kLarge_bytes) {
      incoming.push_back(begin_receive(sign(peer, 0), peer, tag(Kind::end)));
      receipts.emplace_back(peer, tag(Kind::receipt));
    }
    incoming.push_back(std::move(payload));
  }
  for (int peer = 0; peer < world(); ++peer) {
    const SentBytes bytes = sends[peer];
    if (bytes.empty()) continue;
    const uint32_t number = n_sent_[peer]++;
    const auto tag = [&](Kind kind) {
      return tag_of(number, bytes.size(), static_cast<uint32_t>(kind));
    };
    const bool is_large = bytes.size() > kLarge_bytes;
    if (is_large) outgoing.push_back(begin_receive(sign(peer, 1), peer, tag(Kind::receipt)));
    outgoing.push_back(begin_send(bytes, peer, tag(Kind::payload)));
    if (is_large) outgoing.push_back(begin_send(sign(peer, 2), peer, tag(Kind::end)));
  }
  finish(incoming, until);
  for (const auto& [peer, tag] : receipts)
    outgoing.push_back(begin_send(sign(peer, 3), peer, tag));
  finish(outgoing, until);
}

GlooComm::Pending GlooComm::begin_send(SentBytes bytes, int to, int tag) {
  std::vector<at::Tensor> tensors = {
      at::from_blob(const_cast<std::byte*>(bytes.data()), {std::ssize(bytes)}, at::kByte)};
  try {
    return {to, group_->send(tensors, to, tag)};
  } catch (const std::exception& e) {
    throw lost(to, first_sentence(e));
  }
}

GlooComm::Pending GlooComm::begin_receive(ReceivedBytes bytes, int from, int tag) {
  std::vector<at::Tensor> tensors = {at::from_blob(bytes.data(), {std::ssize(bytes)}, at::kByte)};
  try {
    return {from, group_->recv(tensors, from, tag)};
  } catch (const std::exception& e) {
    throw lost(from, first_sentence(e));
  }
}

void GlooComm::finish(std::vector<Pending>& pending, Clock::time_point until) {
  for (size_t i = 0; i < pending.size(); ++i) {
    try {
      pending[i].work->wait(left_until(until));
    } catch (const std::exception& e) {
      if (Clock::now() < until) throw lost(pending[i].peer, first_sentence(e));
      throw unfinished(std::span(pending).subspan(i));
    }
  }
}

/** A peer has closed the connection. One that fails leaves the cause in the store when it does. */
Comm::Failure GlooComm::lost(int peer, const std::string& reason) {
  static constexpr milliseconds kPatience(500);
  struct Note {
    std::string cause;
    bool store_is_gone = false;
  };
  const std::optional<Note> note = within(4 * kPatience, [store = store_, peer]() -> Note {
    const std::vector<std::string> key = {note_key(peer)};
    try {
      store->wait(key, kPatience);
    } catch (const std::exception&) {  // there is no note, or no store
    }
    try {
      return {store->check(key) ? text_of(store->get(key.front())) : ""};
    } catch (const std::exception&) {
      return {"", true};
    }
  });
  if (note && !note->cause.empty()) return stopped(ranks_of_run()[peer], note->cause);
  // The peer may have ended since rank 0 did.
  if (note && note->store_is_gone && meeting_.is_served_by_rank_0)
    return gone({0}, "its store does not answer");
  return gone(in_run({peer}), reason);
}

/** The time is up for the first of them, and Gloo has closed all connections. Those that peers have
 * closed before tell another reason. */
Comm::Failure GlooComm::unfinished(std::span<Pending> pending) {
  std::set<int> missing = {pending.front().peer};
  for (Pending& one : pending.subspan(1)) {
    try {
      one.work->wait(milliseconds(1));
    } catch (const std::exception&) {
      missing.insert(one.peer);
    }
  }
  std::byte unused;
  for (int peer : missing) {
    std::vector<at::Tensor> tensors = {at::from_blob(&unused, {1}, at::kByte)};
    try {
      group_->recv(tensors, peer, 0);
    } catch (const std::exception& e) {
      const std::string reason = first_sentence(e);
      if (reason.find("Application timeout") == reason.npos) return lost(peer, reason);
    }
  }
  return late(in_run({missing.begin(), missing.end()}));
}

std::unique_ptr<Comm> GlooComm::make_group(const std::vector<int>& members,
                                           int n_split,
                                           Clock::time_point until) {
  std::vector<int> ranks = in_run(members);
  if (members.size() == 1) return std::make_unique<LocalComm>(ranks.front());
  Store store = c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("split{}/{}", n_split, members.front()), store_);
  const auto place = std::ranges::find(members, rank()) - members.begin();
  try {
    auto group = open_group(store, static_cast<int>(place), static_cast<int>(members.size()),
                            meeting_, until);
    return std::make_unique<GlooComm>(std::move(store), std::move(group), meeting_,
                                      std::move(ranks), deadline());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    const std::string what =
        fmt::format("cannot connect {}: {}", name_ranks(ranks), first_sentence(e));
    throw Failure{what, "the output of the others may say why", what};
  }
}

void GlooComm::leave(const std::string& cause) noexcept {
  within(milliseconds(1000), [store = store_, key = note_key(rank()), cause] {
    store->set(key, bytes_of(cause));
    return true;
  });
  group_.reset();
}

void prepare_process() {
  // c10d tells of each connection that it tries or loses, with frames of calls; what matters of it
  // comes as an exception.
  constexpr int kFatalErrors = 3;
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = kFatalErrors;
  // Gloo writes to connections that the other end may have closed.
  std::signal(SIGPIPE, SIG_IGN);
}

std::string place_of(const RankEnvironment& environment) {
  return fmt::format("{}:{}", environment.master_address, environment.master_port);
}

std::string_view server_of(const RankEnvironment& environment) {
  return environment.agent_store ? "the launcher" : "rank 0";
}

Store open_store(const RankEnvironment& environment, UniqueFd listener, Clock::time_point until) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(environment.master_port);
  options.isServer = environment.rank == 0 && !environment.agent_store;
  options.waitWorkers = false;
  // c10d counts whole seconds here.
  options.timeout = std::max(milliseconds(1000), left_until(until));
  if (options.isServer) {
    if (!listener) {
      // The store of ranks of one host is for that host alone.
      const std::optional<Route> route =
          find_route(environment.master_address, environment.master_port);
      const bool is_local =
          environment.local_world == environment.world && route && is_loopback(route->other);
      listener = listen_for_ranks(is_local ? route->other : "", environment.master_port).fd;
    }
    options.masterListenFd = ::fcntl(listener.get(), F_DUPFD_CLOEXEC, 0);
  }
  try {
    return c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
  } catch (const std::exception& e) {
    const bool is_known =
        find_route(environment.master_address, environment.master_port).has_value();
    throw Error(Fault::machine, "comm.connect",
                fmt::format("rank {} cannot reach the store at {}, which {} serves: {}",
                            environment.rank, place_of(environment), server_of(environment),
                            is_known ? first_line(e) : "this host does not know that name"),
                "see that it runs, that MASTER_ADDR (--master-addr) is its host's name or address "
                "for all hosts, and that no firewall closes the port");
  }
}

/** A rank that gives up before all have come leaves the reason there for the others. */
constexpr const char* kGivenUp = "given_up";

void give_up(c10d::Store& store, int rank, std::string reason) {
  if (constexpr std::string_view where = "[comm.connect] "; reason.starts_with(where))
    reason.erase(0, where.size());
  store.set(kGivenUp, bytes_of(fmt::format("rank {} gave up: {}", rank, reason)));
}

struct Arrival {
  int rank;
  Route route;
};

std::string arrival_key(int rank) {
  return fmt::format("arrived/{}", rank);
}

/** All ranks have to count as many as the first one that comes. */
void agree_on_world(c10d::Store& store, const RankEnvironment& environment) {
  const auto mine = bytes_of(fmt::format("{} {}", environment.world, environment.rank));
  std::istringstream first(text_of(store.compareSet("world", {}, mine)));
  int world = 0, rank = 0;
  first >> world >> rank;
  if (world == environment.world) return;
  std::pair<int, int> counted[] = {{environment.rank, environment.world}, {rank, world}};
  if (counted[0] < counted[1]) std::swap(counted[0], counted[1]);
  const Error error(Fault::usage, "comm.connect",
                    fmt::format("rank {} counts {} ranks, rank {} counts {}", counted[0].first,
                                counted[0].second, counted[1].first, counted[1].second),
                    "all processes of a run need the same WORLD_SIZE; with --nnodes, all hosts "
                    "need the same --nnodes and as many --gpus");
  give_up(store, environment.rank, error.what());
  throw error;
}

/** Those that have come so far. */
std::vector<Arrival> read_arrivals(c10d::Store& store, int world) {
  std::vector<Arrival> arrivals;
  for (int rank = 0; rank < world; ++rank) {
    if (!store.check({arrival_key(rank)})) continue;
    Arrival arrival{rank, {}};
    std::istringstream text(text_of(store.get(arrival_key(rank))));
    text >> arrival.route.own >> arrival.route.other;
    arrivals.push_back(std::move(arrival));
  }
  return arrivals;
}

/** The hosts of ranks, where their numbers tell them. */
std::string name_hosts(const std::vector<int>& ranks, const RankEnvironment& environment) {
  if (!environment.is_by_host) return "";
  std::set<int> hosts;
  for (int rank : ranks)
    hosts.insert(rank / environment.local_world);
  return fmt::format(" ({} {})", hosts.size() == 1 ? "host" : "hosts", fmt::join(hosts, ", "));
}

[[noreturn]] void refuse_missing(const std::vector<Arrival>& arrivals,
                                 const RankEnvironment& environment,
                                 milliseconds patience) {
  std::vector<int> here, missing(environment.world);
  for (const Arrival& arrival : arrivals)
    here.push_back(arrival.rank);
  std::iota(missing.begin(), missing.end(), 0);
  std::erase_if(missing, [&](int rank) { return std::ranges::binary_search(here, rank); });
  throw Error(Fault::machine, "comm.connect",
              fmt::format("{}{} did not come to {} within {}; {} {} there", name_ranks(missing),
                          name_hosts(missing, environment), place_of(environment),
                          name_time(patience), name_ranks(here), here.size() == 1 ? "is" : "are"),
              fmt::format("the output of {} says why; WORLD_SIZE is {}", name_ranks(missing),
                          environment.world));
}

void stop_if_given_up(c10d::Store& store) {
  if (store.check({kGivenUp}))
    throw Error(Fault::machine, "comm.connect", text_of(store.get(kGivenUp)));
}

/** Until all have come, or the time is over. */
void wait_for_arrivals(c10d::Store& store,
                       const RankEnvironment& environment,
                       const std::function<void()>& while_waiting,
                       Clock::time_point until) {
  std::vector<std::string> keys;
  for (int i = 0; i < environment.world; ++i)
    keys.push_back(arrival_key(i));
  while (!store.check(keys) && Clock::now() < until) {
    if (while_waiting) while_waiting();
    stop_if_given_up(store);
    std::this_thread::sleep_for(milliseconds(50));
  }
}

/** Tells the others that this rank is here, and waits for all of them. */
std::vector<Arrival> meet_ranks(c10d::Store& store,
                                const RankEnvironment& environment,
                                const ConnectOptions& options,
                                Clock::time_point until) {
  const int rank = environment.rank;
  agree_on_world(store, environment);
  if (store.add(fmt::format("seat/{}", rank), 1) > 1)
    throw Error(
        Fault::usage, "comm.connect",
        fmt::format("another process at {} is rank {} already", place_of(environment), rank),
        "each process of a run needs a RANK (each host a --node-rank) of its own, and each run a "
        "MASTER_PORT (--master-port)");
  const Route route = find_route(environment.master_address, environment.master_port)
                          .value_or(Route{"127.0.0.1", "127.0.0.1"});
  store.set(arrival_key(rank), bytes_of(fmt::format("{} {}", route.own, route.other)));
  wait_for_arrivals(store, environment, options.while_waiting, until);
  std::vector<Arrival> arrivals = read_arrivals(store, environment.world);
  if (std::ssize(arrivals) < environment.world)
    refuse_missing(arrivals, environment, options.connect_deadline);
  return arrivals;
}

Network choose_network(const RankEnvironment& environment,
                       const ConnectOptions& options,
                       const std::vector<Arrival>& arrivals) {
  if (!options.interface.empty()) return {options.interface, ""};
  if (!options.host_name.empty()) return {"", options.host_name};
  if (environment.local_world == environment.world) return {"", "127.0.0.1"};
  const std::string& own = arrivals[environment.rank].route.own;
  if (!is_loopback(own)) return {"", own};
  // The master's host may know itself by a loopback address (Debian: 127.0.1.1). Other hosts reach
  // it by one that they can use.
  for (const Arrival& arrival : arrivals)
    if (!is_loopback(arrival.route.other)) return {"", arrival.route.other};
  return {"", own};
}

}  // namespace

bool has_gloo() {
  return true;
}

std::unique_ptr<Comm> connect(const RankEnvironment& environment, ConnectOptions options) {
  if (environment.world == 1) return std::make_unique<LocalComm>();
  prepare_process();
  // A wrong name is said before the ranks wait for each other.
  if (!options.interface.empty() || !options.host_name.empty())
    open_device({options.interface, options.host_name});
  const auto until = Clock::now() + options.connect_deadline;
  const Store server = open_store(environment, std::move(options.listener), until);
  Store store = c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("ferry/{}/{}", environment.run_id, environment.restart_count), server);
  try {
    const std::vector<Arrival> arrivals = meet_ranks(*store, environment, options, until);
    Meeting meeting{choose_network(environment, options, arrivals), !environment.agent_store,
                    [&, look = options.while_waiting] {
                      if (look) look();
                      stop_if_given_up(*store);
                    }};
    auto group = open_group(store, environment.rank, environment.world, meeting, until);
    meeting.while_waiting = options.while_waiting;
    std::vector<int> ranks(environment.world);
    std::iota(ranks.begin(), ranks.end(), 0);
    auto comm = std::make_unique<GlooComm>(std::move(store), std::move(group), std::move(meeting),
                                           std::move(ranks), left_until(until));
    // Others may still need the store that rank 0 serves.
    comm->barrier();
    comm->set_deadline(options.deadline);
    return comm;
  } catch (const Error& error) {
    if (environment.rank == 0 && !environment.agent_store) {
      // The store ends with this rank, which serves it: the others hear first why.
      give_up(*store, 0, error.what());
      std::this_thread::sleep_for(milliseconds(300));
    }
    throw;
  } catch (const std::exception& e) {
    throw Error(
        Fault::machine, "comm.connect",
        fmt::format("rank {} lost the store at {} or another rank: {}", environment.rank,
                    place_of(environment), first_line(e)),
        fmt::format("the output of the other ranks and of {} says more", server_of(environment)));
  }
}

}  // namespace ferry
