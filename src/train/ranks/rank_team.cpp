#include "src/train/ranks/rank_team.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/comm/addresses.h"
#include "src/comm/rendezvous.h"
#include "src/train/ranks/following.h"
#include "src/train/ranks/rank_messages.h"
#include "src/train/ranks/rank_pulse.h"

namespace ferry {
namespace {

/** Listens where the options of several hosts say that this host is reached. */
StoreSocket listen_for_hosts(const RankEnvironment& place) {
  const auto route = find_route(place.master_address, place.master_port);
  const bool is_here = route && (route->own == route->other || is_loopback(route->other));
  if (!is_here)
    throw Error(Fault::usage, "config.master_addr",
                route ? fmt::format("'{}' is {}, which is no address of this host, and node_rank "
                                    "is 0",
                                    place.master_address, route->other)
                      : fmt::format("this host does not know the name '{}'", place.master_address),
                "master_addr is the address of host 0 (`ip address` shows those of a host), and "
                "the other hosts have other node_ranks");
  // Other hosts may know this one by another address than it does: Debian's is 127.0.1.1.
  const bool is_for_this_host =
      is_loopback(place.master_address) || place.master_address == "localhost";
  return listen_for_ranks(is_for_this_host ? route->other : "", place.master_port);
}

}  // namespace

std::chrono::seconds patience_for_ranks(const config::Config& config) {
  return std::chrono::seconds(config.integer("rank_timeout"));
}

RankTeam::RankTeam(const RunRanks& ranks, const config::Config& config) : ranks_(ranks) {
  const std::chrono::seconds patience = patience_for_ranks(config);
  ConnectOptions options = {.deadline = kRankDeadline, .connect_deadline = patience};
  RankEnvironment place;
  if (ranks.is_launched) {
    place = *ranks.place;
  } else {
    StoreSocket store =
        ranks.place ? listen_for_hosts(*ranks.place) : listen_for_ranks("127.0.0.1", 0);
    place = ranks.place.value_or(RankEnvironment{.world = ranks.world,
                                                 .local_world = ranks.local_world,
                                                 .master_address = "127.0.0.1",
                                                 .master_port = store.port,
                                                 .run_id = fmt::format("ferry-{}", ::getpid())});
    place.master_port = store.port;
    options.listener = std::move(store.fd);
    processes_.start(place, words_of_child(ranks, patience));
    if (!ranks.hosts.empty()) hosts_.start(config, ranks, store.port);
    options.while_waiting = [this] {
      processes_.check();
      hosts_.check();
    };
  }
  comm_ = connect(place, std::move(options));
  try {
    pulse_ = start_pulse(*comm_);
  } catch (const Error&) {
    processes_.check();  // it knows how a rank has ended
    hosts_.check();
    throw;
  }
  processes_.note_meeting();
  hosts_.note_meeting();
}

RankTeam::~RankTeam() {
  if (comm_) end(static_cast<int>(Fault::machine), "the leader has failed");
}

void RankTeam::end(int exit_code, const std::string& reason) noexcept {
  try {
    if (comm_) tell_all(*comm_, to_json(RankEnd{exit_code, reason}).dump());
  } catch (const std::exception&) {  // a rank is gone, and the others see that, too
  }
  pulse_.reset();
  comm_.reset();
}

std::vector<double> RankTeam::time_ranks(const RankTiming& timing) {
  tell_all(*comm_, to_json(timing).dump());
  return ferry::time_ranks(*comm_, timing, ranks_.gpu_of(0));
}

std::shared_ptr<LeadingLinks> RankTeam::open(const RankSetup& setup, const StepShape& shape) {
  tell_all(*comm_, to_json(setup).dump());
  auto links = std::make_shared<LeadingLinks>();
  static_cast<RankLinks&>(*links) = make_rank_links(*comm_, shape, ranks_.gpu_of(0));
  links->leader = std::make_unique<RankLeader>(shape, links->groups);
  return links;
}

}  // namespace ferry
