#include <fmt/format.h>

#include <vector>

#include "src/base/error.h"
#include "src/engine/ranks/messages.h"
#include "src/engine/ranks/packed_batch.h"

namespace ferry {
namespace {

/** Answers the leader's requests for a block's states until it has written the block. */
void serve_states(BlockStates& block, Comm& states) {
  for (std::vector<std::byte> bytes;;) {
    StateRequest request;
    receive_value(states, request);
    if (request.block < 0) return;
    FERRY_CHECK(request.block == block.block(), "block {} is asked for, {} is at hand",
                request.block, block.block());
    bytes.resize(static_cast<size_t>(request.n_bytes));
    const StatePiece piece = {static_cast<Segment>(request.segment), request.offset, bytes};
    block.read({&piece, 1}, [](size_t) {});
    states.send(bytes, kLeader);
  }
}

/** Micro-batches as they come, and what they show. */
struct ReceivedBatches {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<HostBatch> batches;

  void receive(Comm& comm, int n) {
    bytes.resize(static_cast<size_t>(n));
    batches.clear();
    for (std::vector<std::byte>& its : bytes) {
      int64_t n_bytes = 0;
      receive_value(comm, n_bytes);
      its.resize(static_cast<size_t>(n_bytes));
      comm.receive(its, kLeader);
      batches.push_back(unpack(its));
    }
  }
};

void evaluate(Session& session, std::span<const HostBatch> batches, bool wants_logits, Comm& comm) {
  for (const auto& [loss, logits] : session.evaluate_own(batches, wants_logits)) {
    const auto n_logits = static_cast<int64_t>(logits.size());
    comm.send(message_of(loss), kLeader);
    comm.send(message_of(n_logits), kLeader);
    if (n_logits > 0) comm.send(std::as_bytes(std::span(logits)), kLeader);
  }
}

}  // namespace

void follow(Session& session, RankGroups& groups) {
  Comm& comm = *groups.commands;
  ReceivedBatches received;
  std::vector<std::byte> bytes;
  for (;;) {
    RankLeader::Command command;
    receive_value(comm, command);
    const auto segment = static_cast<Segment>(command.segment);
    switch (command.verb) {
      case RankVerb::end:
        session.executor().await_saving();
        return;
      case RankVerb::step:
        received.receive(comm, command.n);
        session.step(received.batches);
        break;
      case RankVerb::rehearse:
        received.receive(comm, command.n);
        session.rehearse(received.batches, command.n_bytes != 0);
        break;
      case RankVerb::evaluate:
        received.receive(comm, command.n);
        evaluate(session, received.batches, command.n_bytes != 0, comm);
        break;
      case RankVerb::write:
        bytes.resize(static_cast<size_t>(command.n_bytes));
        comm.receive(bytes, kLeader);
        session.segments().set_own(command.block, segment, command.offset, bytes);
        break;
      case RankVerb::read:
        bytes.resize(static_cast<size_t>(command.n_bytes));
        session.segments().get_own(command.block, segment, command.offset, bytes);
        comm.send(bytes, kLeader);
        break;
      case RankVerb::restore:
        session.restore(command.state);
        session.commit_states();  // a checkpoint may be the next command
        break;
      case RankVerb::change:
        session.change_optimizer(command.key, command.value);
        break;
      case RankVerb::leave_gpu: {
        const bool has_left = session.leave_gpu();
        comm.send(message_of(has_left), kLeader);
        break;
      }
      case RankVerb::return_to_gpu:
        session.return_to_gpu();
        break;
      case RankVerb::save:
        session.executor().await_saving();
        session.executor().save(
            [&states = *groups.states](BlockStates& block) { serve_states(block, states); }, [] {});
        break;
    }
  }
}

}  // namespace ferry
