#include "src/engine/ranks/rank_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "src/base/error.h"
#include "src/engine/ranks/messages.h"
#include "src/engine/ranks/packed_batch.h"

namespace ferry {
namespace {

class CommLink final : public RankLink {
 public:
  CommLink(Comm& exchanges, Comm& decisions) : exchanges_(exchanges), decisions_(decisions) {}
  void exchange(std::span<const std::span<const std::byte>> sends,
                std::span<const std::span<std::byte>> receives,
                void* /*stream*/) override {
    exchanges_.exchange(sends, receives);
  }
  std::vector<std::vector<double>> gather(std::span<const double> values) override {
    std::vector<std::vector<double>> all;
    for (const std::vector<std::byte>& bytes :
         decisions_.all_gather_varying(std::as_bytes(values))) {
      std::vector<double>& its = all.emplace_back(bytes.size() / sizeof(double));
      if (!bytes.empty()) std::memcpy(its.data(), bytes.data(), bytes.size());
    }
    return all;
  }

 private:
  Comm &exchanges_, &decisions_;
};

}  // namespace

RankGroups make_rank_groups(Comm& all, int n_sharing) {
  const auto group = [&] { return all.split(0); };
  RankGroups groups;
  groups.commands = group();
  groups.exchanges = group();
  groups.decisions = group();
  groups.states = group();
  if (n_sharing > 1) groups.sharing = all.split(all.rank() / n_sharing);
  return groups;
}

std::unique_ptr<RankLink> make_comm_link(Comm& exchanges, Comm& decisions) {
  return std::make_unique<CommLink>(exchanges, decisions);
}

RankLeader::~RankLeader() {
  try {
    tell({.verb = RankVerb::end});
  } catch (const std::exception&) {  // a rank is gone: the others see it, too
  }
}

void RankLeader::tell(int rank, const Command& command) {
  groups_.commands->send(message_of(command), rank);
}
void RankLeader::tell(const Command& command) {
  for (int rank = 1; rank < world(); ++rank)
    tell(rank, command);
}

void RankLeader::send_batch(const HostBatch& batch, int rank) {
  const std::vector<std::byte> bytes = pack(batch);
  const auto n_bytes = static_cast<int64_t>(bytes.size());
  groups_.commands->send(message_of(n_bytes), rank);
  groups_.commands->send(bytes, rank);
}

void RankLeader::send_batches(std::span<const HostBatch> micro_batches, const Rounds& rounds) {
  for (int rank = 1; rank < world(); ++rank)
    for (int micro : rounds.micros_of(rank))
      send_batch(micro_batches[static_cast<size_t>(micro)], rank);
}

void RankLeader::step(std::span<const HostBatch> micro_batches) {
  const Rounds rounds = rounds_of(micro_batches);
  for (int rank = 1; rank < world(); ++rank)
    tell(rank, {.verb = RankVerb::step, .n = rounds.n_of(rank)});
  send_batches(micro_batches, rounds);
}

void RankLeader::rehearse(std::span<const HostBatch> micro_batches, bool settles) {
  const Rounds rounds = rounds_of(micro_batches);
  for (int rank = 1; rank < world(); ++rank)
    tell(rank, {.verb = RankVerb::rehearse, .n = rounds.n_of(rank), .n_bytes = settles});
  send_batches(micro_batches, rounds);
}

void RankLeader::evaluate(std::span<const HostBatch> batches, bool wants_logits) {
  const auto n_replicas = static_cast<size_t>(shape_.ranks.n_replicas());
  const auto n_rounds = static_cast<int32_t>(batches.size() / n_replicas);
  tell({.verb = RankVerb::evaluate, .n = n_rounds, .n_bytes = wants_logits});
  for (int rank = 1; rank < world(); ++rank)
    for (size_t n = replica_of(rank); n < batches.size(); n += n_replicas)
      send_batch(batches[n], rank);
}

void RankLeader::take_evaluated(std::span<Evaluated> evaluated) {
  const auto n_replicas = static_cast<size_t>(shape_.ranks.n_replicas());
  for (int rank = 1; rank < world(); ++rank)
    for (size_t n = replica_of(rank); n < evaluated.size(); n += n_replicas) {
      Evaluated its;
      int64_t n_logits = 0;
      receive_value(*groups_.commands, its.loss, rank);
      receive_value(*groups_.commands, n_logits, rank);
      its.logits.resize(static_cast<size_t>(n_logits));
      if (n_logits > 0)
        groups_.commands->receive(std::as_writable_bytes(std::span(its.logits)), rank);
      evaluated[n].loss = its.loss;  // the same on all its stages
      if (shape_.ranks.stage_of(rank) == shape_.blocks.back().stage)
        evaluated[n].logits = std::move(its.logits);
    }
}

void RankLeader::write(const RankPart& part, int block, Segment segment, const std::byte* from) {
  tell(part.rank, {.verb = RankVerb::write,
                   .block = block,
                   .segment = static_cast<int32_t>(segment),
                   .offset = part.offset,
                   .n_bytes = part.n_bytes});
  groups_.commands->send({from, static_cast<size_t>(part.n_bytes)}, part.rank);
}

void RankLeader::read(const RankPart& part, int block, Segment segment, std::byte* to) {
  tell(part.rank, {.verb = RankVerb::read,
                   .block = block,
                   .segment = static_cast<int32_t>(segment),
                   .offset = part.offset,
                   .n_bytes = part.n_bytes});
  groups_.commands->receive({to, static_cast<size_t>(part.n_bytes)}, part.rank);
}

void RankLeader::restore(const SessionState& state) {
  tell({.verb = RankVerb::restore, .state = state});
}

void RankLeader::change_optimizer(std::string_view key, double value) {
  Command command{.verb = RankVerb::change, .value = value};
  FERRY_CHECK(key.size() < sizeof command.key, "option {} is too long", key);
  std::ranges::copy(key, command.key);
  tell(command);
}

bool RankLeader::leave_gpu() {
  tell({.verb = RankVerb::leave_gpu});
  bool all = true;
  for (int rank = 1; rank < world(); ++rank) {
    bool has_left = false;
    groups_.commands->receive(std::as_writable_bytes(std::span(&has_left, 1)), rank);
    all = all && has_left;
  }
  return all;
}

void RankLeader::return_to_gpu() {
  tell({.verb = RankVerb::return_to_gpu});
}

void RankLeader::save() {
  tell({.verb = RankVerb::save});
}

void RankLeader::read_state(const RankPart& part, int block, Segment segment, std::byte* to) {
  const StateRequest request = {.block = block,
                                .segment = static_cast<int32_t>(segment),
                                .offset = part.offset,
                                .n_bytes = part.n_bytes};
  groups_.states->send(message_of(request), part.rank);
  groups_.states->receive({to, static_cast<size_t>(part.n_bytes)}, part.rank);
}

void RankLeader::end_block() {
  for (int rank = 1; rank < world(); ++rank)
    groups_.states->send(message_of(StateRequest()), rank);
}

void GatheredStates::read(std::span<const StatePiece> pieces,
                          const std::function<void(size_t piece)>& look) {
  std::vector<StatePiece> own;
  for (const StatePiece& piece : pieces) {
    // A split master's pieces count whole values, of which the segment has halves.
    const int64_t halves = shape_.split_master && piece.segment == Segment::master ? 2 : 1;
    for_rank_parts(
        shape_, block(), piece.segment,
        {piece.offset_bytes / halves, std::ssize(piece.to) / halves}, [&](RankPart part) {
          if (part.is_copy) return;
          part.offset *= halves, part.done *= halves, part.n_bytes *= halves;
          const auto to =
              piece.to.subspan(static_cast<size_t>(part.done), static_cast<size_t>(part.n_bytes));
          if (part.rank == shape_.ranks.rank)
            own.push_back({piece.segment, part.offset, to});
          else
            leader_.read_state(part, block(), piece.segment, to.data());
        });
  }
  own_.read(own, [](size_t) {});
  for (size_t i = 0; i < pieces.size(); ++i)
    look(i);
}

}  // namespace ferry
